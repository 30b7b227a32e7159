"""Sums are as exact as eager's, within a factor of two: over the first, the last and several dimensions, long and short."""

import pytest
import torch

import oxyfuel

REDUCTIONS = {
    "sum over rows": lambda x: x.sum(0),
    "mean over columns": lambda x: x.mean(1),
    "exponentials over rows": lambda x: x.exp().sum(0),
    "exponentials over columns": lambda x: x.exp().sum(1),
    "both": lambda x: torch.cat([x.sum(0), x.sum(1)]),
    "groups over rows and places": lambda x: x.view(x.shape[0], -1, 4).sum((0, 2)),
    "blocks": lambda x: x.view(-1, 3, x.shape[1]).sum(0),
}
SHAPES = ((33, 640), (63, 512), (129, 512), (384, 1024), (3000, 256), (513, 2048))


def _error(x, exact):
    return (x.double() - exact).square().mean().sqrt().item()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_error_is_near_eagers(name, shape, dynamic):
    oxyfuel.reset()
    function = REDUCTIONS[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    exact = function(x.double())
    ours, eagers = oxyfuel.compile(function, dynamic=dynamic)(x), function(x)
    spacing = torch.finfo(x.dtype).eps * exact.abs().square().mean().sqrt().item()
    assert _error(ours, exact) <= 2 * max(_error(eagers, exact), 0.25 * spacing)
