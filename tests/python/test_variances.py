"""Variances and means near float64's, of data that is hard on the digits: far from zero, drifting, constant."""

import pytest
import torch

import oxyfuel

DATA = {
    "around zero": lambda shape: torch.randn(shape),
    "far from zero": lambda shape: torch.randn(shape) * 0.01 + 100,
    "constant": lambda shape: torch.full(shape, 3.25),
    "drifting": lambda shape: torch.randn(shape).cumsum(0) + 10,
    "one outlier": lambda shape: torch.cat([torch.full((1, *shape[1:]), 1e3), torch.randn(shape[0] - 1, *shape[1:])]),
}
SHAPES = [((5000, 40), 0), ((40, 5000), 1), ((3, 70000), 1), ((70000, 3), 0), ((2, 8, 60, 60), (0, 2, 3)), ((2, 60, 60, 8), (0, 1, 2)), ((301,), 0)]


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()
    yield
    oxyfuel.reset()


@pytest.mark.parametrize("shape, dims", SHAPES)
@pytest.mark.parametrize("data", DATA)
def test_variance_and_mean(data, shape, dims):
    torch.manual_seed(0)
    x = DATA[data](shape)

    @oxyfuel.compile(fullgraph=True)
    def f(x):
        return torch.var_mean(x, dims)

    for ours, exact, scale in zip(f(x), torch.var_mean(x.double(), dims), (x.double().var(), x.abs().max())):
        torch.testing.assert_close(ours.double(), exact, rtol=2e-5, atol=2e-6 * scale.item() + 1e-12)
