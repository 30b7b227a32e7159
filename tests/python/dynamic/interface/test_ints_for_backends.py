"""Ints among the arguments that vary, with a backend of the user's: the graph module takes them, as it does sizes."""

import pytest
import torch

import oxyfuel


class Keeper:
    def __init__(self):
        self.modules, self.examples = [], []

    def __call__(self, module, examples):
        self.modules.append(module)
        self.examples.append(examples)
        return module.forward


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()


PROGRAMS = {
    "a factor": lambda x, n: x * n,
    "a factor before": lambda x, n: n * x - (1 - n * x),
    "calculated": lambda x, n: (2 * n + 1) * x + n // 2,
    "a quotient": lambda x, n: x / (n + 1) + (n + 1) / (x.abs() + 1),
    "a power": lambda x, n: x**n,
    "a slice": lambda x, n: x[:n] + 1,
    "a size": lambda x, n: torch.full((n, 3), 2.0) + x.sum(),
    "repeats": lambda x, n: x.repeat(n, 1),
    "a function": lambda x, n: torch.add(x, n) + torch.mul(x, n) + x.sub(n, alpha=2),
    "elements": lambda x, n: x.masked_fill(x > 0, n).clamp(max=n),
    "a shift": lambda x, n: x.roll(n, 0),
    "the smaller one": lambda x, n: x.narrow(0, 0, min(n, x.size(0))),
    "a size and an int": lambda x, n: x.expand(n, *x.shape) * x.size(0),
    "in a list": lambda x, ns: x * ns[0] + ns[1],
    "by name": lambda x, *, n: x + n,
}


def calls_of(name):
    x = torch.randn(6, 8)
    for n in (3, 4, 5, 2, 7):
        yield ((x, [n, n + 1]), {}) if name == "in a list" else ((x,), {"n": n}) if name == "by name" else ((x, n), {})


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_inputs_of_the_graph_module(name, dynamic):
    function, keeper = PROGRAMS[name], Keeper()
    compiled = oxyfuel.compile(function, backend=keeper, dynamic=dynamic, fullgraph=True)
    for arguments, keywords in calls_of(name):
        torch.testing.assert_close(compiled(*arguments, **keywords), function(*arguments, **keywords))
    assert len(keeper.modules) <= (3 if name == "in a list" else 1 if dynamic else 2)
    assert any(isinstance(example, int) for example in keeper.examples[-1])


@pytest.mark.parametrize("n", [0, 1])
def test_few(n):
    keeper = Keeper()
    compiled = oxyfuel.compile(lambda x, n: x[:n] * n, backend=keeper, dynamic=True, fullgraph=True)
    x = torch.randn(6, 2)
    for k in (3, n, 2):
        torch.testing.assert_close(compiled(x, k), x[:k] * k)
    assert len(keeper.modules) == 1


def test_gradients():
    keeper = Keeper()
    compiled = oxyfuel.compile(lambda x, n: (x * n).sin().repeat(n), backend=keeper, dynamic=True, fullgraph=True)
    for n in (2, 3, 5):
        x = torch.randn(4, requires_grad=True)
        compiled(x, n).sum().backward()
        torch.testing.assert_close(x.grad, n * n * torch.cos(x.detach() * n))
    assert len(keeper.modules) == 1


def test_a_branch_is_a_guard():
    keeper = Keeper()
    function = lambda x, n: x.sin() * n if n > 3 else x.cos() * n  # noqa: E731
    compiled = oxyfuel.compile(function, backend=keeper, dynamic=True, fullgraph=True)
    x = torch.randn(4)
    for n in (1, 2, 5, 7, 3):
        torch.testing.assert_close(compiled(x, n), function(x, n))
    assert len(keeper.modules) == 2


@pytest.mark.parametrize("numbers", [(0.5, 0.7, 0.9), (True, False), (1, 1.5, 2)])
def test_other_numbers_are_constants(numbers):
    keeper = Keeper()
    compiled = oxyfuel.compile(lambda x, n: x * n, backend=keeper, fullgraph=True)
    x = torch.randn(4)
    for n in numbers:
        torch.testing.assert_close(compiled(x, n), x * n)
    assert len(keeper.modules) == len(numbers)


def test_dynamic_false_has_numbers():
    keeper = Keeper()
    compiled = oxyfuel.compile(lambda x, n: x * n, backend=keeper, dynamic=False)
    for n in (1, 2, 3):
        compiled(torch.randn(4), n)
    assert len(keeper.modules) == 3


def test_behind_a_break():
    keeper = Keeper()

    def program(x, n):
        y = x * n
        print(end="")
        return y + n

    compiled = oxyfuel.compile(program, backend=keeper)
    x = torch.randn(4)
    for n in (2, 3, 4, 5):
        torch.testing.assert_close(compiled(x, n), program(x, n))
    assert len(keeper.modules) <= 4
