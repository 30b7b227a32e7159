"""Floats that a program makes of counts which only data tell stay in the graph."""

import math

import pytest
import torch

import oxyfuel

PROGRAMS = {
    "a share of the elements": lambda x: (x + 1, x[x > 0].size(0) / x.numel()),
    "a number per hundred": lambda x: (x + 1, 100 * (x > 0).sum().item() / x.numel()),
    "a share of a sum": lambda x: (x + 1, x[x > 0].size(0) / ((x > 0).sum().item() + 1)),
    "a float": lambda x: (x + 1, float(x[x > 0].size(0))),
    "a root": lambda x: (x + 1, math.sqrt((x > 0).sum().item())),
    "a root of a size": lambda x: (x + 1, math.sqrt(x[x > 0].size(0) + 1)),
    "a scale": lambda x: x * (x[x > 0].size(0) / x.size(0)),
    "half of a count": lambda x: x[: int(x[(x > 0).any(1)].size(0) * 0.5)] * 2,
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_floats_of_counts(name, dynamic):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for seed, rows in enumerate((40, 41, 60, 38, 100)):
        torch.manual_seed(seed)
        x = torch.randn(rows, 3)
        torch.testing.assert_close(compiled(x), program(x))
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 2 and not metrics["breaks"] and not metrics["calls_eager"], (metrics["breaks"], metrics["recompile_reasons"])


def test_nothing_is_a_count_too():
    program = lambda x: (x + 1, math.sqrt(x[x > 0].size(0)), x[x > 0].size(0) / (x.size(0) + 1))  # noqa: E731
    compiled = oxyfuel.compile(program, dynamic=True)
    for x in (torch.randn(40, 3), -torch.ones(5, 3), torch.ones(7, 3), torch.randn(41, 3)):
        torch.testing.assert_close(compiled(x), program(x))


def test_a_quotient_by_nothing_raises_as_in_eager():
    program = lambda x: (x + 1, x.size(0) / x[x > 0].size(0))  # noqa: E731
    compiled = oxyfuel.compile(program, dynamic=True)
    compiled(torch.ones(4, 3))
    for function in (program, compiled):
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            function(-torch.ones(5, 3))
