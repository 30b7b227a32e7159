"""Slices one after the other, whose bounds are formulas of sizes, and writes to slices of what is trained."""

import pytest
import torch
from torch import nn

import oxyfuel

MANY = 20


def repeated(step):
    def program(x, n):
        for _ in range(MANY):
            x = step(x, n)
        return x

    return program


STEPS = {
    "an end that a number is taken from": lambda x, n: x[: x.size(0) - n].relu(),
    "a start behind a number": lambda x, n: x[n:] * 2,
    "an end in front of a number": lambda x, n: x[:-n] * 2,
    "the last ones of what grows": lambda x, n: torch.cat([x, x[-1:]])[-n:],
    "a half and a number": lambda x, n: x[: x.size(0) // 2 + n],
    "what another slice leaves": lambda x, n: x[n:] + x[: x[n:].size(0)],
    "as long as before": lambda x, n: torch.cat([x, x[:n]])[-x.size(0) :],
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", STEPS)
def test_formulas_do_not_grow_with_each_slice(name, dynamic):
    program = repeated(STEPS[name])
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for rows, n in ((100, 1), (120, 2), (90, 3), (300, 4), (7, 2)):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(compiled(x, n), program(x, n))
    assert oxyfuel.metrics()["graphs"] <= 4 and not oxyfuel.metrics()["breaks"] and not oxyfuel.metrics()["calls_eager"]


WRITES = {
    "the first rows": lambda y: y[:2].zero_(),
    "the last row": lambda y: y[-1:].zero_(),
    "all rows but one": lambda y: y[1:].zero_(),
    "all rows but the last": lambda y: y[:-1].zero_(),
    "each other row": lambda y: y[::2].zero_(),
    "each other row from the second": lambda y: y[1::2].mul_(2),
    "half of the rows": lambda y: y[: y.size(0) // 2].zero_(),
    "rows in between": lambda y: y[2:4].add_(1),
    "rows that move": lambda y: y[1:].copy_(y[:-1].clone()),
    "columns": lambda y: y[:, ::2].mul_(2),
}


def writing(write, make):
    """A program that writes to what `make` gives of its input."""

    def program(x):
        y = make(x)
        write(y)
        return (y * y).sum()

    return program


def check_gradients(program, sizes, leaves=None, dynamic=True):
    """Those of the leaves, or of the input, are eager's for all sizes of the input."""
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for size in sizes:
        x = torch.randn(size).requires_grad_(leaves is None)
        torch.testing.assert_close(*(torch.autograd.grad(f(x), leaves or x) for f in (compiled, program)))


def assert_few_graphs():
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 2 and not metrics["calls_eager"], metrics["recompile_reasons"]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", WRITES)
def test_writes_to_slices_of_what_is_trained(name, dynamic):
    layer = nn.Linear(8, 8)
    sizes = [(rows, 8) for rows in (5, 7, 12, 4, 9, 30)]
    check_gradients(writing(WRITES[name], layer), sizes, list(layer.parameters()), dynamic)
    assert_few_graphs()


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("name", WRITES)
def test_writes_to_slices_of_few_rows(name, rows):
    """Eager's answers, also where a slice has no element."""
    layer = nn.Linear(8, 8)
    check_gradients(writing(WRITES[name], layer), [(6, 8), (rows, 8), (9, 8)], list(layer.parameters()))


ROWS = {"row 0": lambda y: y[0].zero_(), "row -1": lambda y: y[-1].mul_(2)}


@pytest.mark.parametrize("name", WRITES | ROWS)
def test_writes_where_all_sizes_are_symbols(name):
    check_gradients(writing((WRITES | ROWS)[name], lambda x: x * 2), [(5, 6), (7, 3), (4, 9), (12, 2), (3, 5)])
    assert_few_graphs()


@pytest.mark.parametrize("dynamic", [None, True])
def test_frames_that_shift_some_channels(dynamic):
    """The temporal shift of video models writes to parts of two dimensions."""

    def program(x):
        fold = x.size(2) // 4
        out = torch.zeros_like(x)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, 1:, fold : 2 * fold] = x[:, :-1, fold : 2 * fold]
        out[:, :, 2 * fold :] = x[:, :, 2 * fold :]
        return out.square().sum()

    check_gradients(program, [(2, frames, 16) for frames in (4, 7, 3, 9, 12, 6)], dynamic=dynamic)
    assert_few_graphs()
