"""Gradients of prod(), cumprod(), and of max() and the like of all elements ask nothing of data: one graph serves all values."""

import pytest
import torch

import oxyfuel

VALUES = torch.tensor([[0.5, -1.5, 2.0, 3.0], [0.0, 2.0, -3.0, 0.5], [1.0, 0.0, 2.0, 0.0], [2.0, 3.0, 0.0, 1.5], [0.0, 0.0, 0.0, 1.0]],
                      dtype=torch.float64)
FUNCTIONS = {
    "all": lambda x: x.prod(),
    "torch.prod": lambda x: torch.prod(x),
    "rows": lambda x: x.prod(1),
    "columns": lambda x: torch.prod(x, dim=0),
    "last": lambda x: x.prod(-1, keepdim=True),
    "of a transposed one": lambda x: x.t().prod(0),
    "twice": lambda x: x.prod(1).prod(),
    "cumprod of rows": lambda x: x.cumprod(1),
    "cumprod of columns": lambda x: torch.cumprod(x, 0),
    "cumprod by name": lambda x: torch.cumprod(input=x, dim=-1),
    "cumprod of a transposed one": lambda x: x.t().cumprod(dim=-1),
    "transmittance": lambda x: torch.cumprod(1 - x.abs(), -1) * x,
    "of a type": lambda x: x.float().prod(1, dtype=torch.float64),
}


def gradient(function, x):
    x = x.clone().requires_grad_()
    result = function(x)
    (result * torch.arange(1.0, result.numel() + 1).view_as(result)).sum().backward()
    return result.detach(), x.grad


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_with_zeros_and_without(name, dynamic):
    function = FUNCTIONS[name]
    compiled = oxyfuel.compile(function, dynamic=dynamic, fullgraph=True)
    calls = [VALUES, VALUES[:1], VALUES[:, :3], VALUES[2:], VALUES.float(), torch.ones(3, 4)]
    for x in calls:
        torch.testing.assert_close(gradient(compiled, x), gradient(function, x), check_stride=True)
    assert not oxyfuel.metrics()["calls_eager"] and not oxyfuel.metrics()["breaks"]


@pytest.mark.parametrize("name", ["all", "rows", "columns", "of a transposed one", "cumprod of rows", "cumprod of columns"])
def test_zeros_beside_nan_and_infinity(name):
    """In one row, and in rows beside each other."""
    function = FUNCTIONS[name]
    compiled = oxyfuel.compile(function, fullgraph=True)
    random = torch.Generator().manual_seed(5)
    numbers = torch.tensor([0, 0, torch.nan, torch.inf, -torch.inf, 2, -3, 0.5, 1, 1.5], dtype=torch.float64)
    for call in range(200):
        x = numbers[torch.randint(call % 3, 10, (3, 4), generator=random)]
        torch.testing.assert_close(gradient(compiled, x), gradient(function, x), equal_nan=True)


@pytest.mark.parametrize("name", ["all", "cumprod of rows"])
@pytest.mark.parametrize("size", [(0,), (1,), (), (2, 0), (1, 5)])
def test_small_sizes(name, size):
    function = {"all": lambda x: x.prod(), "cumprod of rows": lambda x: x.cumprod(-1)}[name]
    compiled = oxyfuel.compile(function)
    for fill in (torch.randn(size), torch.zeros(size)):
        torch.testing.assert_close(gradient(compiled, fill), gradient(function, fill))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64])
def test_other_types(dtype):
    x = VALUES.to(dtype)
    for function in (lambda x: x.prod(1).abs(), lambda x: x.cumprod(1).abs()):
        torch.testing.assert_close(gradient(oxyfuel.compile(function), x), gradient(function, x))


@pytest.mark.parametrize("name", ["rows", "cumprod of rows"])
def test_gradients_of_gradients(name):
    function = FUNCTIONS[name]

    def twice(function):
        x = VALUES.clone().requires_grad_()
        (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        return torch.autograd.grad((first * first).sum(), x)

    torch.testing.assert_close(twice(oxyfuel.compile(function)), twice(function))


@pytest.mark.parametrize("written", ["result", "operand"])
@pytest.mark.parametrize("name", ["rows", "cumprod of rows"])
def test_writes_before_the_backward_pass(name, written):
    function = FUNCTIONS[name]

    def run(function):
        x = VALUES.clone().requires_grad_()
        operand = x * 1
        result = function(operand)
        with torch.no_grad():
            (result if written == "result" else operand).mul_(2)
        result.sum().backward()
        return x.grad

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(function)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(oxyfuel.compile(function))


SELECTIONS = {
    "max": lambda x: x.max(), "torch.min": lambda x: torch.min(x), "median": lambda x: x.median(), "nanmedian": lambda x: torch.nanmedian(x),
    "of a part": lambda x: x[1:].max() - x.min(), "of a product": lambda x: (x * x).max() * x.min(),
}
EQUAL = torch.tensor([[1.0, 3.0, 3.0], [2.0, 1.0, 3.0]])
WITH_NAN = torch.tensor([[1.0, float("nan"), 3.0], [2.0, 1.0, float("nan")]])


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("name", SELECTIONS)
def test_one_element_of_all(name, dynamic):
    function = SELECTIONS[name]
    compiled = oxyfuel.compile(function, dynamic=dynamic, fullgraph=True)
    for x in (EQUAL, EQUAL[:1].repeat(4, 1), WITH_NAN, torch.randn(3, 4), EQUAL.double(), EQUAL.bfloat16()):
        torch.testing.assert_close(gradient(compiled, x), gradient(function, x), equal_nan=True)
    assert not oxyfuel.metrics()["calls_eager"] and not oxyfuel.metrics()["breaks"]


def test_gradients_of_gradients_of_a_maximum():
    def twice(function):
        x = EQUAL.clone().requires_grad_()
        (first,) = torch.autograd.grad(function(x * x), x, create_graph=True)
        return torch.autograd.grad((first * first).sum(), x)

    torch.testing.assert_close(twice(oxyfuel.compile(lambda x: x.max())), twice(lambda x: x.max()))


@pytest.mark.parametrize("function", [lambda x: x.max(), lambda x: torch.min(x), lambda x: x.prod(4), lambda x: x.cumprod(3)])
def test_what_eager_refuses(function):
    x = torch.empty(0, requires_grad=True)
    with pytest.raises((RuntimeError, IndexError)) as expected:
        function(x)
    with pytest.raises(type(expected.value)) as raised:
        oxyfuel.compile(function)(x)
    assert str(raised.value) == str(expected.value)
