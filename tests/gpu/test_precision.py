"""Flags of PyTorch that change how libraries take products and convolutions are guarded, graphs that were recorded included."""

import pytest
import torch

import oxyfuel


@pytest.fixture(autouse=True)
def usual_flags():
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    saved = matmul.allow_tf32, cudnn.allow_tf32, matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction
    yield
    matmul.allow_tf32, cudnn.allow_tf32, matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction = saved


def test_tf32_of_products():
    a, b = (torch.randn(512, 512, device="cuda") for _ in range(2))
    compiled = oxyfuel.compile(lambda a, b: (a @ b).relu())
    for allowed in (False, True, False, True):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        for _ in range(4):  # the third records a graph
            torch.testing.assert_close(compiled(a, b), (a @ b).relu(), rtol=1e-6, atol=1e-6 if not allowed else 1e-4)
    assert "allow_tf32" in oxyfuel.metrics()["recompile_reasons"][0]


def test_tf32_of_convolutions():
    x, w = torch.randn(8, 64, 32, 32, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda")
    compiled = oxyfuel.compile(lambda x, w: torch.nn.functional.conv2d(x, w, padding=1))
    exact = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    for allowed in (False, True, False):
        torch.backends.cudnn.allow_tf32 = allowed
        for _ in range(4):
            error = (compiled(x, w).double() - exact).abs().max().item()
            assert (error < 1e-3) != allowed


def test_sums_of_half_precision():
    a = torch.randn(64, 64, device="cuda", dtype=torch.float16)
    compiled = oxyfuel.compile(lambda a: a @ a)
    compiled(a)
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    compiled(a)
    assert oxyfuel.metrics()["graphs"] == 2
