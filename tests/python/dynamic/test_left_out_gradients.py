"""Gradients of which some are left out, with sizes that are symbols: one compilation, and eager's gradients."""

import itertools

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

SIZES = (5, 3, 8)


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
