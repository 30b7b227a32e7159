"""Gradients of which some are left out, with sizes that are symbols: one compilation, and eager's gradients."""

import itertools

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from size_checks import compiles

SIZES = (5, 3, 8)
WEIGHT = torch.linspace(-1, 1, 36).view(6, 6)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, (4,), weight, bias)


def batch_norm(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, training=True)


def batch_norm_of_fixed_statistics(x, weight, bias):
    return F.batch_norm(x, torch.zeros(4).double(), torch.ones(4).double(), weight, bias)


def group_norm(x, weight, bias):
    return F.group_norm(x, 2, weight, bias)


def convolution(x, weight, bias):
    return F.conv1d(x[:, None], weight[None, None, :3], bias[:1])


def linear(x, weight, bias):
    return F.linear(x, weight[None], bias[:1])


def grid_sample(x, weight, bias):
    grid = torch.stack([weight, bias], -1).tanh()[None, None].expand(x.size(0), 1, 4, 2)
    return F.grid_sample(x[:, None, None].expand(-1, 1, 3, 4), grid, align_corners=False)


WANTED = [wanted for wanted in itertools.product([True, False], repeat=3) if any(wanted)]


def gradients(function, x, parameters, wanted):
    tensors = [t.clone().requires_grad_(w) for t, w in zip((x, *parameters), wanted)]
    oxyfuel.mark_unbacked(tensors[0], 0)
    result = function(*tensors)
    return torch.autograd.grad((result * result.cos()).sum(), [t for t, w in zip(tensors, wanted) if w])


@pytest.mark.parametrize("wanted", WANTED, ids=lambda w: "".join("xwb"[i] for i in range(3) if w[i]))
@pytest.mark.parametrize(
    "function",
    [layer_norm, batch_norm, batch_norm_of_fixed_statistics, group_norm, convolution, linear, grid_sample],
    ids=lambda f: f.__name__,
)
def test_any_gradients(function, wanted):
    compiled = oxyfuel.compile(function, fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    parameters = torch.rand(4).double() + 0.5, torch.randn(4).double()
    for n in SIZES:
        x = torch.randn(n, 4).double()
        for got, expected in zip(gradients(compiled, x, parameters, wanted), gradients(function, x, parameters, wanted)):
            torch.testing.assert_close(got, expected)
    assert oxyfuel.metrics()["graphs"] == before + 1


@pytest.mark.parametrize("function", [layer_norm, batch_norm, group_norm], ids=lambda f: f.__name__)
def test_norms_without_parameters(function):
    compiled = oxyfuel.compile(lambda x: function(x, None, None), fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    for n in SIZES:
        x = torch.randn(n, 4).double()
        (got,) = gradients(compiled, x, (), [True])
        (expected,) = gradients(lambda x: function(x, None, None), x, (), [True])
        torch.testing.assert_close(got, expected)
    assert oxyfuel.metrics()["graphs"] == before + 1


def of_two_layers(x, first, second):
    """Backward passes of the results meet at values that are no results, and reach different leaves."""
    hidden = (x @ first).tanh()
    last = (hidden @ second).tanh()
    return last.sin(), hidden.exp(), hidden * 2


@pytest.mark.parametrize("dynamic", [None, True])
def test_results_whose_backward_passes_meet(dynamic):
    compiled = oxyfuel.compile(of_two_layers, dynamic=dynamic)

    def calls():
        for rows in (4, 7, 3, 9, 1):
            x = torch.linspace(-1, 1, rows * 6).view(rows, 6)
            for used in ((0, 1, 2), (1,), (0, 2)):
                gradients = []
                for function in (of_two_layers, compiled):
                    weights = [WEIGHT.clone().requires_grad_(), WEIGHT.t().clone().requires_grad_()]
                    results = function(x, *weights)
                    sum((results[i] * (i + 1)).sum() for i in used).backward()
                    gradients.append([weight.grad for weight in weights])
                torch.testing.assert_close(*gradients)

    assert compiles(calls) <= 3
