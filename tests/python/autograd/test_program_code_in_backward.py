"""Hooks and functions of the program's own in the backward pass: they need not be linear, and may be the first to read something."""

import pytest
import torch

import oxyfuel

WEIGHT = torch.full((4,), 3.0)
PARAMETER = torch.full((4,), 3.0, requires_grad=True)


def bounded(gradient):
    return gradient.clamp(-2, 2)


class Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone(), x * 2

    @staticmethod
    def backward(ctx, first, second):
        return bounded(first * 10 + second)


def hooked(y, hook=bounded):
    y.register_hook(hook)
    return y


def two_results(x, z):
    y = hooked(x + 1)
    return y * 3, y * 5


def other_leaves(x, z):
    y = hooked(x + 1)
    return y * 3 + z, y * 5


def the_hooked_one(x, z):
    y = hooked(x + 1)
    return y * 3 + z, y


def one_behind_another(x, z):
    y = x + 1
    w = hooked(y + z)
    return w + y, w, y


def what_is_saved(x, z):
    y = hooked(x * 2, lambda g: g * g)
    return y.sin() + z, y.cos(), y


def with_a_view(x, z):
    y = hooked(x - 2, lambda g: g.relu() - 1)
    u = y + 0
    return u, u - z, y.view(-1)


def of_a_function(x, z):
    a, b = Bounded.apply(x)
    return (a * b).sum(), b


def of_a_function_with_others(x, z):
    a, b = Bounded.apply(x - z)
    return a + z, b, z * 2


PROGRAMS = [two_results, other_leaves, the_hooked_one, one_behind_another, what_is_saved, with_a_view, of_a_function,
            of_a_function_with_others]


@pytest.mark.parametrize("chosen", [(0, 1, 2), (0,), (1,), (0, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_of_several_results_go_through_at_once(program, chosen):
    def run(function):
        x, z = (torch.arange(1.0, 5).requires_grad_() for _ in range(2))
        results = function(x, z)
        sum((k + 1) * results[k].sum() for k in chosen if k < len(results)).backward()
        return x.grad, z.grad

    torch.testing.assert_close(run(oxyfuel.compile(program)), run(program))


class Divided(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, number):
        ctx.number = number
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / ctx.number, None


class BoundedByNumber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, number):
        ctx.number = number
        return x.clone(), x * 2

    @staticmethod
    def backward(ctx, first, second):
        return (first * ctx.number + second * WEIGHT).clamp(-ctx.number, ctx.number) * PARAMETER, None


class HookWithParameter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Parameter(torch.full((4,), value)) for value in (2.0, 5.0))

    def forward(self, x):
        return hooked(x * self.first, lambda g: g * self.second) * 3


def bounded_by_number(x):
    a, b = BoundedByNumber.apply(x, x.size(0) / 3)
    return (a * b).sum(0), b


LATE = {
    "a size": lambda x: hooked(x * 2, lambda g: g * g.size(0)) * 3,
    "a tensor": lambda x: hooked(x * 2, lambda g: g * WEIGHT) * 3,
    "a tensor that requires grad": lambda x: hooked(x * 2, lambda g: g * PARAMETER) * 3,
    "sizes of functions": lambda x: Divided.apply(x, x.size(0)) * Divided.apply(x, x.size(0) * 0.5),
    "several": bounded_by_number,
    "a parameter": HookWithParameter(),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", LATE)
def test_what_is_read_first_in_the_backward_pass(name, dynamic):
    oxyfuel.reset()
    function = LATE[name]
    parameters = [*function.parameters()] if isinstance(function, torch.nn.Module) else [PARAMETER]

    def run(function, size):
        torch.manual_seed(0)
        x = torch.randn(size, 4, requires_grad=True)
        results = function(x)
        sum(result.sum() for result in (results if isinstance(results, tuple) else (results,))).backward()
        gradients = [x.grad, *(parameter.grad for parameter in parameters)]
        for parameter in parameters:
            parameter.grad = None
        return gradients

    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for size in (6, 4, 5, 1, 7):
        torch.testing.assert_close(run(compiled, size), run(function, size))
    assert oxyfuel.metrics()["graphs"] <= 2
