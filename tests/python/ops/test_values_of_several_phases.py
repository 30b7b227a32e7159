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


def two_sums(a, v, dtype):
    s = (a * a * 1.0001).to(dtype)
    return (torch.fmax(s, v) - 5.625).sum(), (s >= v).sum()


def joined_sums(a, v, dtype):
    s = torch.where(a > 0, a, a * a).to(dtype)
    return (torch.fmax(s, v) - 5.625).mean(0, keepdim=True) + 1, ((s >= v) * v).sum()


def chosen(a, v, dtype):
    s = torch.where(a > 0, a, a * a).to(dtype)
    w, m = torch.fmax(s, v) - 5.625, s >= v
    return torch.where(m, w, 0).sum(0, keepdim=True), torch.where(m, 0.0, w)


def rows(a, v, dtype):
    s = ((a + v).mean(-1, keepdim=True) * 1.01).to(dtype)
    return (torch.fmax(s, v) - s.float()).sum(-1), (s > v).sum(-1), s


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("program", [two_sums, joined_sums, chosen, rows])
def test_what_one_phase_passes_on_is_rounded(program, dtype):
    """A number in half precision that later phases read from a register is what memory would hold."""
    for first in (-2.375, -1.3, 0.7001, 2.71828):
        a, v = torch.tensor([first]), torch.arange(16) / 8
        for ours, eagers in zip(oxyfuel.compile(program, dynamic=False)(a, v, dtype), program(a, v, dtype), strict=True):
            torch.testing.assert_close(ours, eagers, rtol=1e-6, atol=1e-5)
