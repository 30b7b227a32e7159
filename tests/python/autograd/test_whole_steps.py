"""Functions that do a whole training step: forward and backward pass, and what an optimizer does with the gradients."""

import copy

import pytest
import torch
import torch._dynamo

import oxyfuel

OPTIMIZERS = {
    "SGD": (torch.optim.SGD, dict(lr=0.1)),
    "SGD with weight decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.01)),
    "SGD with momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)),
    "Adam": (torch.optim.Adam, {}),
    "AdamW": (torch.optim.AdamW, {}),
    "AdamW, foreach": (torch.optim.AdamW, dict(foreach=True)),
    "AdamW, fused": (torch.optim.AdamW, dict(fused=True)),
    "AdamW, amsgrad": (torch.optim.AdamW, dict(amsgrad=True)),
    "AdamW, lr a tensor": (torch.optim.AdamW, dict(lr=torch.tensor(1e-3))),
    "RMSprop": (torch.optim.RMSprop, {}),
    "RMSprop, foreach": (torch.optim.RMSprop, dict(foreach=True)),
    "Adagrad": (torch.optim.Adagrad, {}),
}


def new_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)
    )


def batches(count):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(5, 6, generator=generator), torch.randn(5, 2, generator=generator)) for _ in range(count)]


def plain_step(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def clipped_step(model, optimizer):
    def step(x, y):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return loss.detach(), norm

    return step


def accumulating_step(model, optimizer):
    average = copy.deepcopy(model)

    def step(x, y):
        optimizer.zero_grad()
        losses = []
        for part in range(2):
            loss = torch.nn.functional.mse_loss(model(x + part), y) / 2
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        with torch.no_grad():
            for mean, parameter in zip(average.parameters(), model.parameters()):
                mean.lerp_(parameter, 0.1)
        return losses, [p.detach() for p in average.parameters()]

    return step


def scheduled_step(model, optimizer):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    step = plain_step(model, optimizer)

    def scheduled(x, y):
        loss = step(x, y)
        scheduler.step()
        return loss

    return scheduled


def compare(make, optimizer, arguments, calls=5):
    results = []
    for compiled in (False, True):
        model = new_model()
        optimizer_of_model = optimizer(model.parameters(), **arguments)
        step = make(model, optimizer_of_model)
        step = oxyfuel.compile(step) if compiled else step
        outputs = [step(x, y) for x, y in batches(calls)]
        results.append((outputs, model.state_dict(), [p.grad for p in model.parameters()], optimizer_of_model.state_dict()))
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    compare(plain_step, *OPTIMIZERS[name])


@pytest.mark.parametrize("make", [clipped_step, accumulating_step, scheduled_step])
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_kinds_of_steps(make, name):
    compare(make, *OPTIMIZERS[name])


@pytest.mark.parametrize("keeps_out_others", [False, True])
def test_what_an_optimizer_does_is_one_graph(keeps_out_others, monkeypatch):
    if keeps_out_others:  # as torch.compile does where it meets an optimizer
        wrapped = torch._dynamo.disable(torch.optim.SGD._init_group)
        monkeypatch.setattr(torch.optim.SGD, "_init_group", wrapped)
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    expected = [p.detach() - 0.1 for p in model.parameters()]

    @oxyfuel.compile(fullgraph=True)
    def update():
        optimizer.step()
        optimizer.zero_grad()

    update()
    torch.testing.assert_close([p.detach() for p in model.parameters()], expected)
    assert all(p.grad is None for p in model.parameters())
    assert oxyfuel.metrics()["graphs"] == 1


ONE_GRAPH = {
    **OPTIMIZERS,
    "Adam, foreach": (torch.optim.Adam, dict(foreach=True, weight_decay=0.1)),
    "AdamW, amsgrad, foreach": (torch.optim.AdamW, dict(amsgrad=True, foreach=True)),
    "SGD with momentum, foreach": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, foreach=True)),
    "RMSprop, centred": (torch.optim.RMSprop, dict(momentum=0.9, centered=True)),
    "Adagrad, foreach": (torch.optim.Adagrad, dict(foreach=True, lr_decay=0.1)),
    "Adadelta": (torch.optim.Adadelta, {}),
    "Adamax": (torch.optim.Adamax, {}),
}


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_step_with_state_is_one_graph(name):
    kind, arguments = ONE_GRAPH[name]
    results = []
    for wrap in (lambda step: step, oxyfuel.compile(fullgraph=True)):
        model = new_model()
        optimizer = kind(model.parameters(), **arguments)

        @wrap
        def update():
            optimizer.step()

        generator = torch.Generator().manual_seed(2)
        for _ in range(5):
            for p in model.parameters():
                p.grad = torch.randn(p.shape, generator=generator)
            update()
        results.append(([p.detach() for p in model.parameters()], optimizer.state_dict()))
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)
    assert oxyfuel.metrics()["graphs"] <= 2  # the first makes the state
    assert not oxyfuel.metrics()["breaks"] and not oxyfuel.metrics()["calls_eager"]


def test_gradients_are_read_and_reset_as_they_are():
    p, q = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))

    @oxyfuel.compile
    def f(x):
        before = p.grad
        had = p.grad is not None
        p.grad = None
        q.grad = None
        return x + (before if had else 10), before, p.grad is None

    assert f(torch.ones(3))[0].tolist() == [11, 11, 11]
    p.grad = torch.full((3,), 2.0)
    gradient = p.grad
    result, before, is_none = f(torch.ones(3))
    assert result.tolist() == [3, 3, 3] and before is gradient and is_none and p.grad is None
    assert f(torch.ones(3))[0].tolist() == [11, 11, 11]
    assert not oxyfuel.metrics()["breaks"]


def test_ranges_of_a_profiler():
    ranges = torch.profiler.record_function

    @ranges("decorated")
    def decorated(x):
        return x.sin()

    def f(x, breaks):
        with ranges("outer"):
            y = decorated(x) + 1
            with ranges("inner"):
                if breaks:
                    oxyfuel.graph_break()
                y = y * 2
        try:
            with ranges("raising"):
                raise ValueError
        except ValueError:
            return y - 1

    compiled = oxyfuel.compile(f)
    x = torch.ones(3)
    for _ in range(2):
        torch.testing.assert_close(compiled(x, False), f(x, False))
    assert oxyfuel.metrics()["graphs"] == 1 and not oxyfuel.metrics()["breaks"]
    for _ in range(2):
        torch.testing.assert_close(compiled(x, True), f(x, True))
    with torch.profiler.profile() as profile:
        with ranges("after"):
            f(x, False)
    assert {"after", "outer", "decorated"} <= {event.key for event in profile.key_averages()}


def test_a_memory_budget_has_products_computed_again():
    calls, losses = [], []
    for budget in (1.0, 0.0):
        oxyfuel.reset()
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) for _ in range(6)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = oxyfuel.compile(
            lambda x: plain_step(model, optimizer)(x, x), options={"activation_memory_budget": budget}, fullgraph=True
        )
        step(torch.ones(64, 16))
        calls.append(oxyfuel.metrics()["extern_calls"])
        losses.append([step(torch.ones(64, 16)) for _ in range(3)])
    torch.testing.assert_close(*losses)
    assert calls[1] > calls[0]
