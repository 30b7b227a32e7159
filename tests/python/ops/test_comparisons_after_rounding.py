"""Half types: elements that rounding makes equal, infinite or zero are so in comparisons, although kernels compute in float32."""

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


CHAINS = {
    "erf": torch.erf,
    "a distribution": torch.special.ndtr,
    "sin of exp": lambda x: x.exp().sin(),
    "a product and a sum": lambda x: x * 1.1 + 0.3,
}
EXTREMA = {
    "amax": lambda y: y.amax(0),
    "amin": lambda y: y.amin(0),
    "aminmax": lambda y: torch.logaddexp(*y.aminmax(dim=0)),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("extremum", EXTREMA)
@pytest.mark.parametrize("chain", CHAINS)
def test_each_extremum_has_a_gradient(chain, extremum, dtype):
    """What a backward pass computes again is compared with what the forward pass has rounded. Which elements are equal depends
    on where several operators round, but some are."""

    def function(x):
        return EXTREMA[extremum](CHAINS[chain](x))

    x = torch.randn(16, 24, generator=torch.Generator().manual_seed(2)).to(dtype).requires_grad_()
    result = function(x)
    (expected,) = torch.autograd.grad(result, x, torch.ones_like(result))
    (actual,) = torch.autograd.grad(oxyfuel.compile(function)(x), x, torch.ones_like(result))
    assert actual.isfinite().all()
    assert torch.equal((actual != 0).any(0), (expected != 0).any(0))
    if chain == "erf":  # one operator rounds once, as in eager
        torch.testing.assert_close(actual, expected, rtol=0.02, atol=1e-3)


def comparisons(x):
    large, small = x * 60000, x * 1e-7
    return large.isinf(), large == large * 2, small.logical_not(), small == 0, small < small * 1.001


def test_overflow_and_underflow():
    x = torch.randn(64, generator=torch.Generator().manual_seed(3)).half()
    expected = comparisons(x)
    assert expected[0].any() and expected[3].any(), "the data overflows or underflows nowhere"
    for place, (actual, wanted) in enumerate(zip(oxyfuel.compile(comparisons)(x), expected, strict=True)):
        assert torch.equal(actual, wanted), place
