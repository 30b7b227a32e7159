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


@pytest.mark.parametrize("scale", [1e25, 1e-25, 1e15])
@pytest.mark.parametrize("shape, dims", [((64, 37), 0), ((64, 37), 1), ((64, 37), (0, 1)), ((5, 7, 33), (0, 2)), ((40000,), 0), ((3,), 0)])
def test_numbers_whose_squares_do_not_fit(shape, dims, scale):
    torch.manual_seed(0)
    x = torch.randn(shape) * scale

    @oxyfuel.compile(fullgraph=True)
    def f(x):
        return x.std(dims), torch.std_mean(x, dims), x.var(dims), x.sum(dims), (x - x.mean(dims, keepdim=True)).amax(dims), x.std(dims) * 2

    def numbers(results):
        return [results[0], *results[1], *results[2:]]

    exact = [result.float() for result in numbers((x.double().std(dims), torch.std_mean(x.double(), dims), x.double().var(dims), x.double().sum(dims), (x.double() - x.double().mean(dims, keepdim=True)).amax(dims), x.double().std(dims) * 2))]
    for ours, wanted in zip(numbers(f(x)), exact):
        torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-4 * scale)
