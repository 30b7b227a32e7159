"""Pools of images without channels or batches: eager refuses some of them, others only in the backward pass."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

POOLS = {
    "adaptive_avg_pool1d": (1, lambda x: F.adaptive_avg_pool1d(x, 2)),
    "adaptive_avg_pool2d": (2, lambda x: F.adaptive_avg_pool2d(x, 2)),
    "adaptive_avg_pool3d": (3, lambda x: F.adaptive_avg_pool3d(x, 2)),
    "adaptive_max_pool1d": (1, lambda x: F.adaptive_max_pool1d(x, 2)),
    "adaptive_max_pool2d": (2, lambda x: F.adaptive_max_pool2d(x, 2)),
    "avg_pool1d": (1, lambda x: F.avg_pool1d(x, 2)),
    "avg_pool2d": (2, lambda x: F.avg_pool2d(x, 2)),
    "max_pool1d": (1, lambda x: F.max_pool1d(x, 2)),
    "max_pool2d": (2, lambda x: F.max_pool2d(x, 2)),
    "lp_pool2d": (2, lambda x: F.lp_pool2d(x, 2, 2)),
    "interpolate": (2, lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
}


def outcome(function, x):
    """The result's and the gradient's sizes, or the error and the pass that raises it."""
    x = x.clone().requires_grad_()
    try:
        result = function(x.sin())
    except RuntimeError as error:
        return "forward", str(error)
    try:
        return result.shape, torch.autograd.grad(result.sum(), x)[0].shape
    except RuntimeError as error:
        return "backward", str(error)


@pytest.mark.parametrize("sizes", [(2, 0), (0, 3), (0, 0), (0,)], ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_pools_of_nothing(name, sizes):
    dimensions, function = POOLS[name]
    empty = torch.zeros(*sizes, *[4] * dimensions)
    assert outcome(oxyfuel.compile(function), empty) == outcome(function, empty)
    oxyfuel.reset()
    compiled = oxyfuel.compile(function, dynamic=True)
    outcome(compiled, torch.zeros(*[3] * len(sizes), *[4] * dimensions))
    assert outcome(compiled, empty) == outcome(function, empty)


@pytest.mark.parametrize("channels", [3, 129])
@pytest.mark.parametrize("sizes", [(3, 0), (0, 3), (0, 0)], ids=str)
def test_convolutions_of_nothing(channels, sizes):
    """Eager refuses images without pixels, however many channels the weight has."""
    weight = torch.randn(channels, channels, 2, 2)
    function = lambda x: F.conv2d(x, weight, padding=1, stride=2)  # noqa: E731
    empty = torch.zeros(2, channels, *sizes)
    assert outcome(oxyfuel.compile(function), empty) == outcome(function, empty)
    oxyfuel.reset()
    compiled = oxyfuel.compile(function, dynamic=True)
    outcome(compiled, torch.zeros(2, channels, 5, 6))
    assert outcome(compiled, empty) == outcome(function, empty)
