"""Ints that change, as arguments of torch's functions: numbers, tensors in whose place a number may stand, and sizes."""

import warnings

import pytest
import torch

import torch.nn.functional as F
from size_checks import compiles, same

import oxyfuel

PROGRAMS = {
    "a half product": lambda x, n: x.half() * n,
    "add": lambda x, n: torch.add(x, n),
    "where": lambda x, n: torch.where(x > 0, n, x),
    "mul": lambda x, n: x.mul(n),
    "maximum of a literal": lambda x, n: torch.maximum(x, torch.tensor(n)),
    "a power of integers": lambda x, n: x.int() ** n,
    "eq": lambda x, n: x.eq(n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "lerp": lambda x, n: torch.lerp(x, x + 1, n),
    "fill_": lambda x, n: x.clone().fill_(n),
    "index_fill_": lambda x, n: x.clone().index_fill_(0, torch.tensor([0]), n),
    "a difference from a number": lambda x, n: n - x.int(),
    "remainder": lambda x, n: torch.remainder(x, n),
    "bitwise_and": lambda x, n: x.int().bitwise_and(n),
    "clamp": lambda x, n: torch.clamp(x, n, n + 2),
    "the number that torch.SymInt hides behind": lambda x, n: 7777777 + x * n,
    "a tensor of numbers": lambda x, n: torch.tensor([n, 2]) + x[:2],
    "new_tensor": lambda x, n: x.new_tensor([n]),
    "a power of a number": lambda x, n: torch.pow(n, x),
    "a floor division": lambda x, n: torch.stack([x, x * n]).sum(0) // n,
    "a size": lambda x, n: torch.zeros(n, 2) + x[0],
}


@pytest.mark.parametrize("backend", ["native", "eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_int_that_changes(name, backend):
    function = PROGRAMS[name]
    compiled = oxyfuel.compile(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (3, 5, 7, 2):
            actual, expected = compiled(torch.ones(3), n), function(torch.ones(3), n)
            assert actual.dtype == expected.dtype and torch.equal(actual, expected), n


SIZES = {
    "a tensor of a size": lambda x: x * torch.tensor(x.size(1)),
    "of another type": lambda x: x * torch.tensor(x.size(1), dtype=torch.float64) + torch.as_tensor(x.size(0), dtype=torch.float32),
    "on a device": lambda x: x.sum() + torch.tensor([x.size(0), 2, x.size(1)], device=torch.device("cpu")),
    "of a torch.Size": lambda x: torch.tensor(x.shape) * 2,
    "of lists": lambda x: torch.tensor([[x.size(0), 1], [3, x.size(1)]]) + torch.tensor([(x.size(0), 0.5)]),
    "of a quotient": lambda x: x * torch.tensor(1.0 / x.size(1)),
    "new_tensor": lambda x: x.new_tensor([x.size(0), x.size(1)]),
    "an element of it": lambda x: x[: int(torch.tensor(x.shape)[0]) // 2],
    "linspace": lambda x: x + torch.linspace(0, 1, x.size(1)),
    "linspace to a size": lambda x: torch.linspace(-1, x.size(0) - 1, steps=x.size(1), dtype=torch.float64),
    "linspace of floats": lambda x: torch.linspace(start=1.0 / x.size(1), end=3, steps=x.size(1)),
    "divmod": lambda x: x[: divmod(x.size(0), 2)[0]] * divmod(-x.size(1), 4)[1],
    "one_hot": lambda x: F.one_hot(torch.arange(x.size(1)) % 3, x.size(1)).to(x.dtype) @ x.t(),
    "one_hot of rows": lambda x: F.one_hot(x.long().abs() % 2, num_classes=x.size(0)),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", SIZES)
def test_a_size_as_a_number(name, dynamic):
    function = SIZES[name]
    compiled = oxyfuel.compile(function, dynamic=dynamic, fullgraph=True)

    def run():
        for rows, columns in ((8, 6), (9, 11), (2, 3), (7, 12), (13, 33)):
            x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows))
            same(compiled(x), function(x))

    assert compiles(run) <= (1 if dynamic else 2)
    for rows, columns in ((1, 5), (5, 1), (1, 1), (4, 2)):  # 0 and 1 may be numbers of their own
        if name.startswith("one_hot") and rows < 2:
            continue  # eager refuses the classes
        x = torch.randn(rows, columns)
        same(compiled(x), function(x))


def test_classes_that_are_too_few():
    def function(x, classes):
        return F.one_hot(classes, x.size(0))

    compiled = oxyfuel.compile(function, dynamic=True)
    classes = torch.tensor([0, 3, 1])
    same(compiled(torch.zeros(4), classes), function(torch.zeros(4), classes))
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes"):
        compiled(torch.zeros(3), classes)
    same(compiled(torch.zeros(6), classes), function(torch.zeros(6), classes))


MESSAGES = {
    "a size": lambda x: torch._assert(x.size(1) > 0, f"{x.size(1)}"),
    "in words": lambda x: torch._assert(x.size(1) > 1, f"Input of {x.size(0)} rows and {x.shape[1]:>4} columns does not fit"),
    "a whole shape": lambda x: torch._assert(x.dim() == 2, f"shape {x.shape!r} {x.shape} of {x.dtype}"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_message_of_an_assertion_that_holds(name):
    def function(x):
        MESSAGES[name](x)
        return x * 2

    compiled = oxyfuel.compile(function, fullgraph=True)

    def run():
        for columns in (5, 6, 7, 8, 11):
            same(compiled(torch.ones(3, columns)), function(torch.ones(3, columns)))

    assert compiles(run) <= 2


def test_messages_that_are_read():
    """Of an assertion that fails, and text that goes elsewhere before it comes to an assertion."""

    def fails(x):
        torch._assert(x.size(1) < 7, f"there are {x.size(1)} columns")
        return x * 2

    seen = []

    def notes(x):
        torch._assert(True, seen.append(f"{x.size(1)}") or f"{x.size(1)}")
        torch._assert(True, "half: " + str(int(f"{x.size(1)}") // 2))
        return x * int(f"{x.size(1)}")

    compiled = oxyfuel.compile(fails)
    for columns in (4, 5, 6):
        same(compiled(torch.ones(3, columns)), torch.full((3, columns), 2.0))
    with pytest.raises(AssertionError, match="there are 9 columns"):
        compiled(torch.ones(3, 9))
    compiled = oxyfuel.compile(notes)
    for columns in (4, 5, 6):
        same(compiled(torch.ones(3, columns)), torch.full((3, columns), float(columns)))
    assert seen == ["4", "5", "6"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_of_powers_whose_exponent_varies(dtype):
    compiled = oxyfuel.compile(lambda x, n: x**n)

    def calls():
        for n in (2, 3, 0, 1, 5, -2, 7):
            found = []
            for way in (compiled, lambda x, n: x**n):
                x = torch.tensor([1.0, -2.0, 0.5, 1.5] + [0.0] * (n >= 0), dtype=dtype).requires_grad_()
                y = way(x, n)
                y.sum().backward()
                found.append((y.detach(), x.grad))
            for got, expected in zip(*found):
                torch.testing.assert_close(got, expected)

    before = oxyfuel.metrics()["graphs"]
    calls()
    assert oxyfuel.metrics()["graphs"] - before <= 3


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype, first_rounded", [(torch.bfloat16, 257), (torch.float16, 2049)])
def test_exponents_that_the_type_does_not_hold(dtype, first_rounded, grad):
    """Eager rounds them in its own way."""
    compiled = oxyfuel.compile(lambda x, n: x**n)
    for n in (2, 3, first_rounded, first_rounded - 1, 5):
        found = []
        for way in (compiled, lambda x, n: x**n):
            x = torch.tensor([-1.0, 1.0], dtype=dtype, requires_grad=grad)
            y = way(x, n)
            if grad:
                y.sum().backward()
            found.append((y.detach(), x.grad))
        for got, expected in zip(*found):
            assert got is expected is None or torch.equal(got, expected), n
