"""Whole training steps with optimizers whose functions are fused, and with a GradScaler, on the GPU.

A step is as near to float64 as eager's, within a factor of 2 and a rounding.
"""

import copy

import pytest
import torch
from comparison import error_of
from torch import nn

import oxyfuel

if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

CUDA = torch.device("cuda")
CALLS = 6  # the third one records its work, and those behind it replay it

OPTIMIZERS = {
    "Adam": (torch.optim.Adam, {}),
    "Adam, decay": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.1, maximize=True)),
    "Adam, amsgrad": (torch.optim.Adam, dict(amsgrad=True, betas=(0.6, 0.9))),
    "Adam, lr a tensor": (torch.optim.Adam, dict(lr=torch.tensor(0.003, device=CUDA))),
    "Adam, lr a tensor of the host": (torch.optim.Adam, dict(lr=torch.tensor(0.003))),
    "AdamW": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1)),
    "AdamW, maximize": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1, maximize=True)),
    "SGD": (torch.optim.SGD, dict(lr=0.1)),
    "SGD, decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.1, maximize=True)),
    "SGD, momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.01)),
    "SGD, nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, maximize=True)),
    "SGD, lr a tensor": (torch.optim.SGD, dict(lr=torch.tensor(0.1, device=CUDA), momentum=0.9)),
    "Adagrad": (torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.1, weight_decay=0.1)),
}
SIZES = (130, 17), (1030,), ()


def steps(kind, arguments, dtype, calculate, compile):
    generator = torch.Generator().manual_seed(0)

    def tensor(size):
        return torch.randn(size, generator=generator).to(dtype).to(CUDA, calculate)

    parameters = [nn.Parameter(tensor(size)) for size in SIZES]
    optimizer = kind(parameters, fused=True, **copy.deepcopy(arguments))
    step = compile(optimizer.step)
    for _ in range(CALLS):
        for p in parameters:
            p.grad = tensor(p.shape)
        step()
    state = [value.clone() for each in optimizer.state.values() for value in each.values()]
    return [*(p.detach() for p in parameters), *state]


def check_near(ours, eager, exact):
    for mine, theirs, best in zip(ours, eager, exact, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.device == theirs.device
        (own,), (others,) = error_of([mine], [best]), error_of([theirs], [best])
        roundings = 8 if mine.dtype == torch.float64 else 1  # eager is float64 itself then
        rounding = roundings * torch.finfo(mine.dtype).eps * max(1.0, best.abs().max().item())
        assert own <= 2 * others + rounding, f"error {own}, eager's {others}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_right(name, dtype):
    entry = OPTIMIZERS[name]
    try:
        eager = steps(*entry, dtype, dtype, lambda f: f)
    except RuntimeError as error:  # not all releases have all of them
        pytest.skip(str(error))
    exact = steps(*entry, dtype, torch.float64, lambda f: f)
    check_near(steps(*entry, dtype, dtype, oxyfuel.compile(fullgraph=True)), eager, exact)
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 2 and not metrics["calls_eager"], metrics["recompile_reasons"]


def new_model():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.GELU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 10)
    return nn.Sequential(*layers).to(CUDA)


def batch(call):
    generator = torch.Generator().manual_seed(call)
    x, y = torch.randn(4, 3, 8, 8, generator=generator), torch.randint(10, (4,), generator=generator)
    return x.to(CUDA), y.to(CUDA)


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).float(), y)


def plain_step(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whole_training_steps_are_one_graph(name):
    kind, arguments = OPTIMIZERS[name]
    results = []
    for compile in (lambda f: f, oxyfuel.compile(fullgraph=True)):
        model = new_model()
        try:
            optimizer = kind(model.parameters(), fused=True, **{**copy.deepcopy(arguments), "maximize": False})
            step = compile(plain_step(model, optimizer))
            losses = [step(*batch(call)) for call in range(CALLS)]
        except RuntimeError as error:
            if results:  # eager has it
                raise
            pytest.skip(str(error))
        results.append((losses, [p.detach() for p in model.parameters()]))
    torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-4)
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 2 and not metrics["calls_eager"], metrics["recompile_reasons"]


@pytest.mark.parametrize("schedule", ["StepLR", "OneCycleLR"])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD, momentum"])
def test_numbers_that_a_scheduler_changes(name, schedule):
    kind, arguments = OPTIMIZERS[name]
    results = []
    for compile in (lambda f: f, oxyfuel.compile):
        model = new_model()
        optimizer = kind(model.parameters(), fused=True, **arguments)
        if schedule == "StepLR":
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.8)
        else:
            scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=20)
        step = compile(plain_step(model, optimizer))
        losses = []
        for call in range(12):
            losses.append(step(*batch(call)))
            scheduler.step()
        results.append((losses, [p.detach() for p in model.parameters()]))
    torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-4)
    metrics = oxyfuel.metrics()
    assert not metrics["breaks"] and metrics["graphs"] <= 4, (metrics["breaks"], metrics["recompile_reasons"])


@pytest.mark.parametrize("optimizer", ["AdamW", "AdamW, fused", "SGD", "SGD, fused"])
@pytest.mark.parametrize("what", ["the forward pass", "the whole step"])
def test_scaled_gradients_of_float16(what, optimizer):
    """A GradScaler, whose scale is much too large at first: some steps are left out. Afterwards it is far from a scale
    at which roundings decide whether gradients overflow."""
    kind = {"AdamW": torch.optim.AdamW, "SGD": torch.optim.SGD}[optimizer.split(",")[0]]

    def run(compile):
        model = new_model()
        steps = kind(model.parameters(), lr=0.01, fused="fused" in optimizer or None)
        scaler = torch.amp.GradScaler("cuda", init_scale=2.0**34, backoff_factor=2.0**-12, growth_interval=8)
        forward = compile(model) if what == "the forward pass" else model

        def step(x, y):
            steps.zero_grad()
            with torch.autocast("cuda", torch.float16):
                loss = loss_of(forward, x, y)
            scaler.scale(loss).backward()
            scaler.unscale_(steps)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(steps)
            scaler.update()
            return loss.detach()

        call = compile(step) if what == "the whole step" else step
        losses, scales = [], []
        for number in range(24):
            losses.append(call(*batch(number % 3)))
            scales.append(scaler.get_scale())
        return losses, scales, [p.detach() for p in model.parameters()]

    (losses, scales, parameters), expected = run(oxyfuel.compile), run(lambda f: f)
    assert scales == expected[1] and scales[0] < 2.0**34
    torch.testing.assert_close(losses, expected[0], rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(parameters, expected[2], rtol=5e-2, atol=1e-2)
    metrics = oxyfuel.metrics()
    if what == "the forward pass" or "fused" in optimizer:  # which leaves out a step by itself
        assert metrics["calls_compiled"] > 0 and not metrics["breaks"], metrics["breaks"]
    else:
        assert metrics["graphs"] > 1


@pytest.mark.parametrize("found_inf", [0.0, 1.0])
def test_infinite_gradients_leave_all_as_it_was(found_inf):
    results = []
    for compile in (lambda f: f, oxyfuel.compile(fullgraph=True)):
        p = nn.Parameter(torch.linspace(-1, 1, 1000, device=CUDA))
        optimizer = torch.optim.AdamW([p], lr=0.1, fused=True)
        step = compile(optimizer.step)
        for call in range(CALLS):
            p.grad = torch.full_like(p, 8.0)
            optimizer.grad_scale = torch.tensor(4.0, device=CUDA)
            optimizer.found_inf = torch.tensor(found_inf if call == 4 else 0.0, device=CUDA)
            step()
        results.append((p.detach(), p.grad, *optimizer.state[p].values()))
    torch.testing.assert_close(*results)
