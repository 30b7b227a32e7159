"""quantile() and nanquantile() of a number, in the graph: all ways to interpolate, NaN, dimensions, gradients and sizes."""

import pytest
import torch

import oxyfuel

WAYS = ["linear", "lower", "higher", "midpoint", "nearest"]


def quantiles(x, interpolation):
    found = []
    for q in (0.0, 0.3, 0.5, 1.0):
        options = {"interpolation": interpolation}
        found += [torch.quantile(x, q, **options), torch.quantile(x, q, dim=1, **options), torch.nanquantile(x, q, dim=0, keepdim=True, **options)]
        found += [torch.quantile(x, q, keepdim=True, **options), torch.nanquantile(x, q, dim=-2, **options)]
    return found


def data(*sizes, dtype=torch.float32):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(len(sizes)), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("interpolation", WAYS)
def test_values(interpolation, dtype):
    compiled = oxyfuel.compile(quantiles, fullgraph=True)
    for x in (data(4, 5, 6, dtype=dtype), data(4, 9, 6, dtype=dtype), data(3, 9, 7, dtype=dtype).mT.contiguous().mT, data(1, 1, 1, dtype=dtype)):
        for with_nan in (False, True):
            if with_nan:
                x = x.clone()
                x[0, 0, 0] = float("nan")
            for actual, expected in zip(compiled(x, interpolation), quantiles(x, interpolation), strict=True):
                assert actual.shape == expected.shape and actual.dtype == expected.dtype
                assert [s for s, n in zip(actual.stride(), actual.shape) if n > 1] == [s for s, n in zip(expected.stride(), expected.shape) if n > 1]
                torch.testing.assert_close(actual, expected, equal_nan=True)


@pytest.mark.parametrize("interpolation", WAYS)
def test_gradients(interpolation):
    def function(x):
        return (torch.quantile(x, 0.4, dim=1, interpolation=interpolation) * 2).sum() + torch.nanquantile(x, 0.7, interpolation=interpolation)

    compiled = oxyfuel.compile(function, fullgraph=True)
    for columns in (5, 8, 9):
        x = data(3, columns)
        expected, actual = x.clone().requires_grad_(), x.clone().requires_grad_()
        function(expected).backward()
        compiled(actual).backward()
        torch.testing.assert_close(actual.grad, expected.grad)


def test_what_eager_refuses():
    for q, x in ((1.5, data(3, 4)), (-0.1, data(3, 4)), (0.5, data(3, 0))):

        def function(x, q=q):
            return torch.quantile(x, q)

        with pytest.raises(RuntimeError) as expected:
            function(x)
        with pytest.raises(RuntimeError) as actual:
            oxyfuel.compile(function)(x)
        assert str(actual.value) == str(expected.value)


def test_compilations():
    compiled = oxyfuel.compile(lambda x: torch.quantile(x, 0.5, dim=1), fullgraph=True)
    for n in (8, 9, 10, 13):
        compiled(data(n, n + 1))
    assert oxyfuel.metrics()["graphs"] <= 2
