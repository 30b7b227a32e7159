"""Kernels that load before they wait for the kernels before them: what these write, or others have just written, is new."""

import pytest
import torch
import torch.nn.functional as F
from comparison import check, check_close
from torch import nn
from torch.utils._pytree import tree_map

import oxyfuel

CUDA = torch.device("cuda")
CALLS = 200
WAYS = {"graphs": {}, "launches": {"options": {"graphs": False}}}


class Layer(nn.Module):
    """What a decoder makes of one token: norms, which each program of the products makes anew."""

    def __init__(self, width, norm):
        super().__init__()
        self.norms = nn.ModuleList([norm(width) for _ in range(2)])
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down, self.out = nn.Linear(3 * width, width), nn.Linear(width, width)

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return x, self.out(self.norms[1](x))


def layer(width, norm, dtype):
    return Layer(width, norm).to(CUDA, dtype).eval()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("width", [64, 512, 1000, 2048])
def test_rows_that_many_programs_make(width, norm, dtype):
    model = layer(width, norm, dtype)
    x = torch.randn(1, width, device=CUDA).to(dtype)
    compiled = oxyfuel.compile(model, fullgraph=True)
    with torch.no_grad():
        expected = model(x)
        exact = layer(width, norm, torch.float64)
        exact.load_state_dict(model.state_dict())
        for _ in range(5):
            check_close(compiled(x), expected, exact(x.double()))


@pytest.mark.parametrize("way", WAYS)
def test_weights_that_were_just_written(way):
    """Kernels of others write weights and inputs right before each call."""
    model, x = layer(512, nn.RMSNorm, torch.bfloat16), torch.randn(1, 512, device=CUDA).bfloat16()
    compiled = oxyfuel.compile(model, fullgraph=True, **WAYS[way])
    results, expected = [], []
    with torch.no_grad():
        for compute, kept in ((model, expected), (compiled, results)):
            torch.manual_seed(1)
            state = {name: p.clone() for name, p in model.named_parameters()}
            start = x.clone()
            for _ in range(CALLS):
                for p in model.parameters():
                    p.mul_(-0.99)
                x.add_(0.01)
                kept.append(tree_map(torch.clone, compute(x)))
            x.copy_(start)
            for name, p in model.named_parameters():
                p.copy_(state[name])
    for ours, eager in zip(results, expected, strict=True):
        torch.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("way", WAYS)
def test_what_the_call_itself_writes(way):
    """A cache that the call writes and then normalises."""
    def function(cache, x, place, w):
        cache.index_copy_(0, place, x)
        return F.rms_norm(cache[-1:], (512,)) @ w.t(), F.layer_norm(cache, (512,))

    compiled = oxyfuel.compile(function, fullgraph=True, **WAYS[way])
    w = torch.randn(640, 512, device=CUDA).bfloat16() / 16
    caches = [torch.zeros(8, 512, device=CUDA).bfloat16() for _ in range(2)]
    with torch.no_grad():
        for call in range(CALLS):
            x, place = torch.randn(1, 512, device=CUDA).bfloat16(), torch.tensor([call % 8], device=CUDA)
            expected, ours = function(caches[0], x, place, w), compiled(caches[1], x, place, w)
            torch.testing.assert_close(ours, expected, rtol=2e-2, atol=2e-2)
            torch.testing.assert_close(*caches, rtol=0, atol=0)


def test_a_norm_that_others_read():
    def function(x, w):
        y = F.layer_norm(x, (512,))
        return y, y @ w.t(), (y * 2) @ w.t()

    check(function, torch.randn(1, 512, device=CUDA).bfloat16(), torch.randn(512, 512, device=CUDA).bfloat16() / 16)
