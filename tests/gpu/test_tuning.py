"""mode="max-autotune": block shapes that were timed on the device give eager's answers, and later processes know them."""

import os
import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from comparison import check_close, in_float64
from torch.utils._pytree import tree_map

import oxyfuel

CUDA = torch.device("cuda")


def normed(x, w):
    return F.layer_norm(x, x.shape[-1:], w) * x.softmax(-1) + x.sum(0)


def transposed(x, w):
    return (x.t() + x.t().roll(1, 0)).contiguous() * w[:, None]


def gathered(x, w):
    return F.embedding(x.argmax(-1) % w.numel(), w[:, None].expand(-1, 64).contiguous()) + x[:, :64]


@pytest.mark.parametrize("mode", ["max-autotune", "max-autotune-no-cudagraphs"])
@pytest.mark.parametrize("sizes", [(512, 1024), (33, 5000), (4, 40000)])
@pytest.mark.parametrize("function", [normed, transposed, gathered])
def test_answers(function, sizes, mode):
    compiled = oxyfuel.compile(function, mode=mode, fullgraph=True)
    for _ in range(4):
        arguments = torch.randn(sizes, device=CUDA), torch.randn(sizes[1], device=CUDA)
        check_close(compiled(*arguments), function(*arguments), function(*tree_map(in_float64, arguments)))


def sums_of_columns(x):
    return x.sum(0), x.amax(0), x.var(0)


def sums_beside_rows(x):
    y = x.sigmoid() * x
    return y - y.mean(-1, keepdim=True), y.sum(0)


@pytest.mark.parametrize("sizes", [(65536, 64), (8192, 512), (3, 1 << 20), (70001, 13)])
@pytest.mark.parametrize("function", [sums_of_columns, sums_beside_rows])
def test_parts_of_reductions(function, sizes):
    x = torch.randn(sizes, device=CUDA)
    check_close(oxyfuel.compile(function, mode="max-autotune", fullgraph=True)(x), function(x), function(x.double()))


def test_training():
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.LayerNorm(512), torch.nn.GELU(), torch.nn.Linear(512, 64)).to(CUDA)
    compiled = oxyfuel.compile(model, mode="max-autotune")
    for _ in range(4):
        x = torch.randn(128, 256, device=CUDA)
        gradients = []
        for callable in (compiled, model):
            model.zero_grad()
            callable(x).square().mean().backward()
            gradients.append([p.grad.clone() for p in model.parameters()])
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_sizes_that_change():
    compiled = oxyfuel.compile(normed, mode="max-autotune", dynamic=True)
    for sizes in ((64, 256), (1, 1000), (300, 77), (0, 12)):
        arguments = torch.randn(sizes, device=CUDA), torch.randn(sizes[1], device=CUDA)
        check_close(compiled(*arguments), normed(*arguments), normed(*tree_map(in_float64, arguments)))


@pytest.mark.parametrize(
    "sizes, expression, expected",
    [
        ((300, 3000), "x.softmax(-1)", r"tuning 1 of 1: softmax_\w+ takes [\d.]+ us as"),
        ((65536, 64), "x.sum(0)", r"tuning: 64 sums of 65536 elements take [\d.]+ us in \d+ parts"),
    ],
)
def test_choices_are_kept_on_disk(tmp_path, sizes, expression, expected):
    program = f"import torch, oxyfuel; x = torch.randn({sizes}, device='cuda'); f = oxyfuel.compile(lambda x: {expression}, mode='max-autotune'); f(x)"
    environment = {**os.environ, "OXYFUEL_CACHE": str(tmp_path), "OXYFUEL_LOGS": "timing"}
    logs = [subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stderr for _ in range(2)]
    assert re.search(expected, logs[0]), logs[0]
    assert "tuning" not in logs[1]
