"""A kernel that computes the same values over several spaces: each phase reads those of its own space."""

import pytest
import torch
from torch.nn import functional as F

import oxyfuel


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(1, 100), (2, 36), (3, 5, 7)], ids=str)
@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_repeated_rows_beside_plain_ones(repeats, shape, dynamic):
    def program(x):
        rows = x.softmax(-1)
        repeated = rows.repeat_interleave(repeats, -1)
        return F.layer_norm(repeated, repeated.shape[-1:]), F.celu(rows, 1.5), (repeated * 2).tanh()

    def exponentials(x):
        e = (x * 0.5).exp()
        many = e.repeat_interleave(repeats, -1)
        share = many / many.sum(-1, keepdim=True)
        return share, (share - e.sum(-1, keepdim=True)).square().sum(-1), e / (1 + e), e.sum(-1)

    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    for function in (program, exponentials):
        oxyfuel.reset()
        for ours, eagers in zip(oxyfuel.compile(function, dynamic=dynamic)(x), function(x)):
            torch.testing.assert_close(ours, eagers)
