"""scatter whose index names one element of each row, into a tensor that needs no memory: a choice, made where it is read."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]
ADDED = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.int16]
SIZES = {0: (7, 33), 1: (9, 67), 2: (3, 5, 17)}  # by dimension

PLACED = {
    "src": lambda x, d, i, s: x.scatter(d, i, s),
    "number": lambda x, d, i, s: x.scatter(d, i, 3),
    "computed src": lambda x, d, i, s: x.scatter(d, i.flip(0), s * s),
    "src that is larger": lambda x, d, i, s: x.scatter(d, i, torch.cat([s, s], d)),
    "twice": lambda x, d, i, s: x.scatter(d, i, s).scatter(d, i.flip(0), 2),
    "in place": lambda x, d, i, s: x.clone().scatter_(d, i, s),
    "read twice": lambda x, d, i, s: (lambda y: y.sum(d, keepdim=True) + y)(x.scatter(d, i, s)),
}
COMBINED = {
    "scatter_add": lambda x, d, i, s: x.scatter_add(d, i, s),
    "add": lambda x, d, i, s: x.scatter(d, i, s, reduce="add"),
    "multiply": lambda x, d, i, s: x.scatter(d, i, s, reduce="multiply"),
    "sum": lambda x, d, i, s: x.scatter_reduce(d, i, s, "sum"),
    "prod": lambda x, d, i, s: x.scatter_reduce(d, i, s, "prod"),
    "sum without self": lambda x, d, i, s: x.scatter_reduce(d, i, s, "sum", include_self=False),
    "amax": lambda x, d, i, s: x.scatter_reduce(d, i, s, "amax"),
}


def operands(dim, dtype):
    size, row = SIZES[dim], list(SIZES[dim])
    row[dim] = 1
    generator = torch.Generator().manual_seed(dim)
    index = torch.randint(0, size[dim], row, generator=generator)
    return size, index, torch.randint(0, 5, row, generator=generator).to(dtype)


def check(place, dim, dtype, dynamic):
    size, index, source = operands(dim, dtype)
    functions = [
        lambda i, s: place(torch.zeros(size, dtype=dtype), dim, i, s),
        lambda i, s: place(torch.full(size, 1, dtype=dtype), dim, i, s) == s,
        lambda i, s: place((s.expand(size) * 2).to(dtype), dim, i, s),
    ]
    for function in functions:
        oxyfuel.reset()
        actual, expected = oxyfuel.compile(function, dynamic=dynamic)(index, source), function(index, source)
        torch.testing.assert_close(actual, expected, rtol=0 if not dtype.is_floating_point else None, atol=0 if not dtype.is_floating_point else None)
        assert actual.stride() == expected.stride()


@pytest.mark.parametrize("dynamic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("dim", SIZES)
@pytest.mark.parametrize("name", PLACED)
def test_elements_are_eagers(name, dim, dynamic):
    for dtype in TYPES:
        check(PLACED[name], dim, dtype, dynamic)


@pytest.mark.parametrize("dim", SIZES)
@pytest.mark.parametrize("name", COMBINED)
def test_sums_and_products_are_eagers(name, dim):
    for dtype in ADDED:
        check(COMBINED[name], dim, dtype, False)


def test_a_number_is_rounded_to_the_type():
    function = lambda i: torch.zeros(5, 9, dtype=torch.bfloat16).scatter(1, i, 0.1).float() * 3  # noqa: E731
    i = torch.tensor([[0], [8], [3], [3], [1]])
    torch.testing.assert_close(oxyfuel.compile(function)(i), function(i), rtol=0, atol=0)


def message(function, *arguments):
    try:
        function(*arguments)
    except (IndexError, RuntimeError) as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("function", [
    lambda i, s: torch.zeros(4, 6).scatter(1, i, s),
    lambda i, s: torch.zeros(4, 6).scatter_add(1, i, s).sum(1),
    lambda i, s: (torch.ones(4, 6).scatter(1, i, 2.0), s)[1],
    lambda i, s: torch.zeros(6, 4).scatter(0, i.t(), 1.0).relu(),
], ids=["result", "sum", "nobody reads it", "columns"])
def test_an_index_out_of_range(function):
    source = torch.randn(4, 1)
    compiled = oxyfuel.compile(function)
    for wrong in (6, -1, -6, -7, 1 << 40):
        for row in range(4):
            index = torch.tensor([[0], [5], [2], [1]])
            index[row] = wrong
            expected = message(function, index, source)
            assert expected is not None and message(compiled, index, source) == expected
    index = torch.tensor([[0], [5], [2], [1]])
    torch.testing.assert_close(compiled(index, source), function(index, source))


def test_the_gradient_of_cross_entropy_is_one_kernel():
    """Without a tensor of the logits' size but the gradient."""
    def function(logits, labels):
        return torch.autograd.grad(F.cross_entropy(logits, labels, ignore_index=3), logits)[0]

    logits, labels = torch.randn(40, 300, requires_grad=True), torch.randint(0, 300, (40,))
    labels[5] = 3
    explanation = oxyfuel.explain(function)(logits, labels)
    torch.testing.assert_close(oxyfuel.compile(function)(logits, labels), function(logits, labels))
    assert sum(segment["kernels"] for segment in explanation.segments) <= 3, explanation


def test_no_rows_and_no_columns():
    for size, index in (((0, 5), (0, 1)), ((4, 0), (4, 1)), ((4, 1), (4, 1)), ((1, 1), (1, 1))):
        function = lambda i: torch.zeros(size).scatter(1, i, 1.0)  # noqa: E731, B023
        i = torch.zeros(index, dtype=torch.int64)
        oxyfuel.reset()
        compiled = oxyfuel.compile(function)
        expected = message(function, i)
        if expected is None:
            torch.testing.assert_close(compiled(i), function(i))
        else:
            assert message(compiled, i) == expected
