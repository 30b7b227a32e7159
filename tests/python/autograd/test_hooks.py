"""Hooks of autograd: on arguments, results, tensors made inside, what is saved, and modules."""

import traceback

import pytest
import torch
import torch.nn as nn

import oxyfuel
from training_checks import X, check


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()
    yield
    oxyfuel.reset()


SEEN = []


def test_tensor_hooks():
    def run(function, inputs):
        seen = []
        output = function(*inputs)
        output.register_hook(lambda g: seen.append(g.clone()) or g * 2)
        inputs[0].register_hook(lambda g: g + 1)
        inputs[0].register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
        output.sum().backward()
        return inputs[0].grad, seen

    check(lambda a: a.sin(), X, run=run, graphs=1)


def test_hooks_of_an_output_whose_gradient_is_not_asked_for():
    def run(function, inputs):
        seen = []
        first, second = function(*inputs)
        second.register_hook(lambda g: seen.append(g * 2))
        first.sum().backward()
        return inputs[0].grad, len(seen)

    check(lambda a: (a.sin(), a.cos()), X, run=run, graphs=1)


def test_saved_tensor_hooks():
    def run(function, inputs):
        packed = []

        def pack(value):
            packed.append(1)
            return value.double()

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value.float()):
            output = function(*inputs)
        output.sum().backward()
        return inputs[0].grad, len(packed)

    check(lambda a: a.sin() * a, X, run=run)


def test_hooks_on_tensors_made_inside():
    def hooked(a):
        b = a.sin()
        b.register_hook(lambda g: g * 2)
        c = b * a
        handle = c.register_hook(lambda g: None)  # noqa: F841
        c.register_hook(torch.Tensor.cos)
        return c.exp().sum()

    check(hooked, X, graphs=1)


def test_hooks_before_and_after_a_write():
    def in_place(a):
        b = a * 3
        b.register_hook(lambda g: g.clamp(max=0.5))
        b.mul_(2)
        b.register_hook(lambda g: g + b.detach())
        return (b * b).sum()

    check(in_place, X, graphs=1)


@pytest.mark.parametrize(
    "hook", [torch.ones_like, lambda g: SEEN.append(g.sum().item()), lambda g: 1 / 0, lambda g: g.sum()],
    ids=["of no gradient", "with effects", "raises", "of another shape"]
)
def test_hooks_that_are_left_to_eager(hook):
    def hooked(a):
        b = a.sin()
        b.register_hook(hook)
        return b.exp().sum(), a.cos()

    results = []
    for function in (hooked, oxyfuel.compile(hooked)):
        SEEN.clear()
        a = torch.ones(3, requires_grad=True)
        first, second = function(a)
        second.sum().backward(retain_graph=True)
        try:
            first.backward()
        except (RuntimeError, ZeroDivisionError) as error:
            results.append((type(error), str(error), a.grad))
        else:
            results.append((a.grad, *SEEN))
    for expected, found in zip(*results, strict=True):
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(found, expected)
        else:
            assert found == expected


def test_handles_of_hooks():
    def removed(a):
        b = a.sin()
        handle = b.register_hook(lambda g: g * 100)
        handle.remove()
        return b.sum()

    check(removed, X)

    def returned(a):
        b = a.sin()
        return b, b.register_hook(lambda g: g * 2)

    a = torch.ones(3, requires_grad=True)
    b, handle = oxyfuel.compile(returned)(a)
    handle.remove()
    b.sum().backward()
    torch.testing.assert_close(a.grad, torch.ones(3).cos())


def test_hooks_of_modules():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.second(self.first(x).tanh())

    results = []
    for compiles in (False, True):
        oxyfuel.reset()
        torch.manual_seed(0)
        model, seen = Net(), []
        model.first.register_full_backward_hook(lambda module, inputs, outputs: seen.append((inputs, outputs)))
        model.second.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 2,))
        call = oxyfuel.compile(model) if compiles else model
        for _ in range(2):
            model.zero_grad()
            x = torch.ones(5, 3, requires_grad=True)
            call(x).square().sum().backward()
        results.append((seen, x.grad, [p.grad for p in model.parameters()]))
    torch.testing.assert_close(*results)
    assert len(seen) == 2


@pytest.mark.parametrize("backend", ["native", "eager"])
@pytest.mark.parametrize("is_global", [False, True])
def test_hooks_that_are_always_called(backend, is_global):
    class Refuses(nn.Module):
        def forward(self, x):
            if x.sum() > 100:
                raise ValueError("large")
            return x.sin()

    module = Refuses()
    called = []

    def run(function):
        for factor in (1, 1000, 1000, 1):
            try:
                called.append(function(X * 0 + factor))
            except ValueError as error:
                called.append((str(error), [frame.lineno for frame in traceback.extract_tb(error.__traceback__)][1:]))
        found = called[:]
        called.clear()
        return found

    def called_module(x):
        return module(x) + 1

    register = nn.modules.module.register_module_forward_hook if is_global else module.register_forward_hook
    handle = register(lambda module, inputs, output: called.append("called"), always_call=True)
    try:
        expected = run(called_module)
        found = run(oxyfuel.compile(called_module, backend=backend))
    finally:
        handle.remove()
    assert [type(item) for item in found] == [type(item) for item in expected]
    assert [item for item in found if not torch.is_tensor(item)] == [item for item in expected if not torch.is_tensor(item)]
