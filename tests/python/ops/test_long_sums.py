"""Long sums lose no more than eager's: also those over several loops, none of which is long, with and without symbols.

The elements are many and alike, so that what one running sum loses goes in one direction.
"""

import pytest
import torch
from torch.nn import functional as F

import oxyfuel

SHAPES = ((301, 17, 199, 1), (1009, 1013, 1), (301, 1009, 3), (37, 41, 43, 17), (1_000_003,), (600_011, 2))


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums(shape, dynamic):
    x = torch.randint(1, 40, shape, generator=torch.Generator().manual_seed(0)) / 64 + 0.01

    def check(function, arguments):
        ours, exact = oxyfuel.compile(function, dynamic=dynamic)(*arguments), function(*(a.double() for a in arguments))
        torch.testing.assert_close(ours.double(), exact, rtol=3e-6, atol=0)

    check(lambda x: x.sum(), [x])
    check(lambda x: F.pad(x, (0, 1) * x.dim(), value=0.7).square().mean(), [x])
    check(lambda x: x.transpose(0, -1).contiguous().sum(), [x])
    if x.dim() > 2:
        check(lambda x: (x * x).sum((0, -1)), [x])
        check(lambda x: (x + x).sum((0, 1)), [x])
        check(lambda x, y: (x * y).mean((1, 2)), [x, x.flip(0)])
