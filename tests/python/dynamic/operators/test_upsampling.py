"""F.interpolate of sizes that change: by a factor and to a size, in all modes, with gradients."""

import pytest
import torch
from torch.nn import functional as F

import oxyfuel

MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
    "antialias": (2,),
}
CASES = [(mode, dimensions) for mode, all_dimensions in MODES.items() for dimensions in all_dimensions]
SIZES = ((5, 7, 6), (8, 4, 9), (6, 9, 5))


def options_of(mode):
    return {"mode": "bilinear", "antialias": True} if mode == "antialias" else {"mode": mode}


def check(function, dimensions, graphs=1):
    compiled = oxyfuel.compile(function, dynamic=True, fullgraph=True)
    for sizes in SIZES:
        data = torch.randn(2, 3, *sizes[:dimensions])
        mine, theirs = data.clone().requires_grad_(), data.clone().requires_grad_()
        ours, eager = compiled(mine), function(theirs)
        assert ours.stride() == eager.stride()
        torch.testing.assert_close(ours, eager)
        ours.square().sum().backward()
        eager.square().sum().backward()
        torch.testing.assert_close(mine.grad, theirs.grad)
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == graphs and not metrics["breaks"], metrics["recompile_reasons"]


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()


@pytest.mark.parametrize("factor", [2.0, 0.5, 1.25])
@pytest.mark.parametrize(("mode", "dimensions"), CASES)
def test_by_a_factor(mode, dimensions, factor):
    check(lambda x: F.interpolate(x * 2, scale_factor=factor, **options_of(mode)), dimensions)


@pytest.mark.parametrize(("mode", "dimensions"), CASES)
def test_to_a_size(mode, dimensions):
    def function(x):
        size = [extent * 2 - 1 for extent in x.shape[2:]]
        return F.interpolate(x * 2, size=size, **options_of(mode))

    check(function, dimensions)


def test_aligned_corners_and_a_factor_a_dimension():
    check(lambda x: F.interpolate(x.sin(), scale_factor=(2.0, 3.0), mode="bilinear", align_corners=True), 2)


def test_a_factor_that_rounds_is_compiled_for_each_size():
    check(lambda x: F.interpolate(x.sin(), scale_factor=1.1, mode="nearest"), 2, graphs=len(SIZES))


def test_errors_are_eagers():
    def function(x):
        return F.interpolate(x, size=(0, 3))

    compiled = oxyfuel.compile(function, dynamic=True)
    x = torch.randn(2, 3, 5, 7)
    with pytest.raises(RuntimeError) as eager:
        function(x)
    with pytest.raises(RuntimeError) as ours:
        compiled(x)
    assert str(ours.value) == str(eager.value)
