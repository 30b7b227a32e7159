"""A product that is added to something is not rounded, nor does it overflow: eager's kernels are compiled to fused instructions."""

import pytest
import torch

import oxyfuel

PROGRAMS = {
    "add": lambda a, b: torch.add(a, b, alpha=-4),
    "add in place": lambda a, b: a.clone().add_(b, alpha=-4),
    "sub": lambda a, b: torch.sub(a, b, alpha=4),
    "rsub": lambda a, b: torch.rsub(b, a, alpha=4),
    "addcmul": lambda a, b: torch.addcmul(a, b, b),
    "addcmul of a value": lambda a, b: torch.addcmul(a, b, b, value=0.5),
    "addcmul in place": lambda a, b: a.clone().addcmul_(b, b, value=3),
    "a sum of a product": lambda a, b: a + b * 4,
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_that_overflow(name, dtype, dynamic):
    function = PROGRAMS[name]
    compiled = oxyfuel.compile(function, dynamic=dynamic, options={"recompile_limit": 100})
    most = torch.finfo(dtype).max
    for count in (1, 3, 64, 100):
        for first in (-torch.inf, torch.inf, -most, 1.0):
            a, b = torch.full((count,), first, dtype=dtype), torch.full((count,), -most, dtype=dtype)
            torch.testing.assert_close(compiled(a, b), function(a, b), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits(name):
    function = PROGRAMS[name]
    a, b = torch.randn(1000, generator=torch.Generator().manual_seed(0)), torch.randn(1000)
    torch.testing.assert_close(oxyfuel.compile(function)(a, b), function(a, b), rtol=0, atol=0)


def test_integers():
    a, b = torch.arange(-50, 50), torch.arange(100)
    for name in ("add", "sub", "rsub", "addcmul", "addcmul in place"):
        assert torch.equal(oxyfuel.compile(PROGRAMS[name])(a, b), PROGRAMS[name](a, b))
