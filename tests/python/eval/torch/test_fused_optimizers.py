"""Optimizers with fused=True, whose steps are PyTorch's fused functions on lists of tensors.

A step is as near to float64 as eager's, within a factor of 2 and a rounding.
"""

import copy

import pytest
import torch

import oxyfuel

OPTIMIZERS = {
    "Adam": (torch.optim.Adam, {}),
    "Adam, decay": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.1, maximize=True)),
    "Adam, amsgrad": (torch.optim.Adam, dict(amsgrad=True, betas=(0.6, 0.9))),
    "Adam, lr a tensor": (torch.optim.Adam, dict(lr=torch.tensor(0.003))),
    "Adam, lr of one element": (torch.optim.Adam, dict(lr=torch.tensor([0.003], dtype=torch.float64))),
    "AdamW": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1)),
    "AdamW, lr a tensor": (torch.optim.AdamW, dict(lr=torch.tensor(0.01), weight_decay=0.1, maximize=True)),
    "SGD": (torch.optim.SGD, dict(lr=0.1)),
    "SGD, decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.1, maximize=True)),
    "SGD, momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.01)),
    "SGD, nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, maximize=True)),
    "SGD, lr a tensor": (torch.optim.SGD, dict(lr=torch.tensor(0.1), momentum=0.9)),
    "Adagrad": (torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.1)),
    "Adagrad, decay": (torch.optim.Adagrad, dict(lr=0.1, weight_decay=0.1, maximize=True)),
    "Adagrad, lr a tensor": (torch.optim.Adagrad, dict(lr=torch.tensor(0.1))),
}
SIZES = (7, 5), (33,), ()


def parameters(dtype):
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(size, generator=generator).to(dtype)) for size in SIZES]


def state_of(optimizer):
    return [value.clone() for state in optimizer.state.values() for value in state.values()]


def steps(kind, arguments, dtype, calculate, compile, count=6, fused=True):
    """What the steps write, in `calculate` on gradients that `dtype` holds."""
    tensors = [torch.nn.Parameter(p.detach().to(calculate)) for p in parameters(dtype)]
    optimizer = kind(tensors, fused=fused, **copy.deepcopy(arguments))
    generator = torch.Generator().manual_seed(1)
    step = compile(optimizer.step)
    for _ in range(count):
        for p in tensors:
            p.grad = torch.randn(p.shape, generator=generator).to(dtype).to(calculate)
        step()
    return [*(p.detach() for p in tensors), *state_of(optimizer)]


def check_near(ours, eager, exact):
    for mine, theirs, best in zip(ours, eager, exact, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        errors = [(other.double() - best.double()).abs().max().item() for other in (mine, theirs)]
        roundings = 8 if mine.dtype == torch.float64 else 1  # eager is float64 itself then
        rounding = roundings * torch.finfo(mine.dtype).eps * max(1.0, best.abs().max().item())
        assert errors[0] <= 2 * errors[1] + rounding, errors


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_right(name, dtype):
    entry = OPTIMIZERS[name]
    # Eager's kernel takes a momentum of 16 bits for one of float32.
    is_wrong_in_eager = "momentum" in entry[1] and dtype.itemsize == 2
    eager = steps(*entry, dtype, dtype, lambda f: f, fused=not is_wrong_in_eager)
    exact = steps(*entry, dtype, torch.float64, lambda f: f)
    ours = steps(*entry, dtype, dtype, oxyfuel.compile(fullgraph=True))
    check_near(ours, eager, exact)
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 2 and not metrics["calls_eager"], metrics["recompile_reasons"]


def test_many_steps_stay_near():
    entry = OPTIMIZERS["AdamW"]
    eager = steps(*entry, torch.float32, torch.float32, lambda f: f, count=200)
    exact = steps(*entry, torch.float32, torch.float64, lambda f: f, count=200)
    check_near(steps(*entry, torch.float32, torch.float32, oxyfuel.compile, count=200), eager, exact)


def training_step(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whole_training_steps_are_one_graph(name):
    kind, arguments = OPTIMIZERS[name]
    results = []
    for compile in (lambda f: f, oxyfuel.compile(fullgraph=True)):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(16, 3))
        optimizer = kind(model.parameters(), fused=True, **{**copy.deepcopy(arguments), "maximize": False})
        step = compile(training_step(model, optimizer))
        losses = [step(torch.ones(2, 2, 4, 4)) for _ in range(5)]
        results.append((losses, [p.detach() for p in model.parameters()], state_of(optimizer)))
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-6)
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 2 and not metrics["calls_eager"], metrics["recompile_reasons"]


@pytest.mark.parametrize("schedule", ["StepLR", "OneCycleLR"])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD, momentum", "Adagrad"])
def test_numbers_that_a_scheduler_changes(name, schedule):
    kind, arguments = OPTIMIZERS[name]
    if schedule == "OneCycleLR" and kind is torch.optim.Adagrad:
        pytest.skip("has no momentum")

    def run(compile):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 4)
        optimizer = kind(model.parameters(), fused=True, **arguments)
        if schedule == "StepLR":
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.8)
        else:
            scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
        step = compile(training_step(model, optimizer))
        losses = []
        for _ in range(12):
            losses.append(step(torch.ones(8, 4)))
            scheduler.step()
        return losses, [p.detach() for p in model.parameters()], state_of(optimizer)

    torch.testing.assert_close(run(oxyfuel.compile), run(lambda f: f), rtol=1e-4, atol=1e-5)
    metrics = oxyfuel.metrics()
    assert not metrics["breaks"] and metrics["graphs"] <= 4, (metrics["breaks"], metrics["recompile_reasons"])


NUMBERS = {
    "_fused_adam_": dict(lr=0.1, beta1=0.8, beta2=0.9, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False),
    "_fused_adamw_": dict(lr=0.1, beta1=0.8, beta2=0.9, weight_decay=0.1, eps=1e-8, amsgrad=True, maximize=True),
    "_fused_sgd_": dict(lr=0.1, weight_decay=0.1, momentum=0.9, dampening=0.1, nesterov=True, maximize=True, is_first_step=False),
    "_fused_adagrad_": dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, eps=1e-8, maximize=True),
}


def lists_of(name, sizes=((6,), (2, 3)), dtype=torch.float32):
    generator = torch.Generator().manual_seed(2)

    def some():
        return [torch.rand(size, generator=generator).to(dtype) for size in sizes]

    counts = [torch.tensor(3.0) for _ in sizes]
    if name == "_fused_sgd_":
        return [some(), some(), some()]
    if name == "_fused_adagrad_":
        return [some(), some(), some(), counts]
    return [some(), some(), some(), some(), some() if NUMBERS[name]["amsgrad"] else [], counts]


def compare(name, lists, **others):
    """The call in eager and compiled, on lists of the same values."""
    numbers = {**NUMBERS[name], **others}
    outcomes = []
    for compile in (lambda f: f, oxyfuel.compile):
        given = copy.deepcopy(lists)
        call = compile(lambda *lists: getattr(torch, name)(*lists, **numbers))
        try:
            outcomes.append((call(*given), given))
        except RuntimeError as error:
            outcomes.append((str(error), given))
    assert outcomes[1][0] == outcomes[0][0]
    torch.testing.assert_close(outcomes[1][1], outcomes[0][1])


@pytest.mark.parametrize("found_inf", [None, 0.0, 1.0])
@pytest.mark.parametrize("grad_scale", [None, 8.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_scales_and_infinities(name, dtype, grad_scale, found_inf):
    scale = None if grad_scale is None else torch.tensor(grad_scale)
    found = None if found_inf is None else torch.tensor([found_inf])
    compare(name, lists_of(name, dtype=dtype), grad_scale=scale, found_inf=found)
    assert not oxyfuel.metrics()["breaks"]


def test_gradients_that_are_infinite_leave_all_as_it_was():
    p, rate = torch.nn.Parameter(torch.ones(3)), torch.tensor(0.1)
    optimizer = torch.optim.AdamW([p], lr=rate, fused=True)
    step = oxyfuel.compile(optimizer.step, fullgraph=True)
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(0.0)
    for gradient in (1.0, torch.inf, 2.0):
        p.grad = torch.full((3,), gradient)
        optimizer.found_inf = torch.tensor(float(gradient == torch.inf))
        before = p.detach().clone()
        step()
        assert (p.equal(before)) == (gradient == torch.inf)
        assert p.grad[0].item() == (gradient if gradient == torch.inf else gradient / 2)
    assert optimizer.state[p]["step"].item() == 2


@pytest.mark.parametrize("name", NUMBERS)
def test_sizes_that_change(name):
    update = oxyfuel.compile(lambda *lists: getattr(torch, name)(*lists, **NUMBERS[name]))
    for size in (4, 9, 17, 1, 30):
        ours, theirs = (lists_of(name, ((size,), (size, 2))) for _ in range(2))
        update(*ours)
        getattr(torch, name)(*theirs, **NUMBERS[name])
        torch.testing.assert_close(ours, theirs)
    assert oxyfuel.metrics()["graphs"] <= 3 and not oxyfuel.metrics()["breaks"]


def transposed(name):
    lists = lists_of(name)
    lists[1][1] = lists[1][1].t().contiguous().t()  # which eager reads as if it were none
    return lists


def with_gaps(name):
    lists = lists_of(name)
    lists[0][0] = torch.ones(12)[::2]
    return lists


def of_another_type(name):
    lists = lists_of(name)
    lists[1][0] = lists[1][0].double()
    return lists


def too_few(name):
    lists = lists_of(name)
    lists[1].pop()
    return lists


@pytest.mark.parametrize("make", [transposed, with_gaps, of_another_type, too_few])
@pytest.mark.parametrize("name", NUMBERS)
def test_what_eager_does_with_unusual_lists(name, make):
    if make is with_gaps:  # eager writes into the gaps
        lists = make(name)
        oxyfuel.compile(lambda *lists: getattr(torch, name)(*lists, **NUMBERS[name]))(*lists)
    else:
        compare(name, make(name))
    assert oxyfuel.metrics()["breaks"]


def test_an_optimizer_whose_step_is_given_a_closure():
    outcomes = []
    for compile in (lambda f: f, oxyfuel.compile):
        p = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.Adam([p], fused=True)

        def closure():
            optimizer.zero_grad()
            loss = p.square().sum()
            loss.backward()
            return loss

        step = compile(optimizer.step)
        outcomes.append(([step(closure).detach() for _ in range(3)], p.detach()))
    torch.testing.assert_close(*outcomes)
