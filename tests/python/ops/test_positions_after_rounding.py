"""Positions of extrema of half types: elements that rounding makes equal are equal, although kernels compute in float32."""

import pytest
import torch

import oxyfuel


def positions(x):
    y = x + 100
    return y.argmax(-1), y.argmin(0), y.argmax(), *y.max(1), *y.min(0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_first_of_those_that_are_equal(dtype):
    x = torch.randn(64, 300, generator=torch.Generator().manual_seed(1)).to(dtype)
    expected = positions(x)
    assert (x.float() + 100).argmax(-1).ne(expected[0]).any(), "the data has no ties"
    for actual, wanted in zip(oxyfuel.compile(positions)(x), expected, strict=True):
        assert torch.equal(actual, wanted)
