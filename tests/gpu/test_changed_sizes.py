"""Sizes that change between calls, on a GPU: one set of kernels serves all of them."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import oxyfuel

SIZES = ((8, 16), (9, 16), (9, 40), (33, 70), (1, 5), (300, 1000), (0, 16))
PROGRAMS = {
    "pointwise": lambda x: torch.relu(x * 2 - 1) / 3,
    "softmax": lambda x: torch.softmax(x, -1),
    "a sum of columns": lambda x: x.sum(0),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, (x.size(1),)),
    "a product": lambda x: x @ x.t(),
    "a transpose": lambda x: x.t().contiguous() + 1,
    "slices": lambda x: x[1:] + x[:-1] if x.size(0) else x,
    "cat": lambda x: torch.cat([x, x * 2]),
    "cat of columns": lambda x: torch.cat([x[:, :2], x * 2, x[:, 1:]], 1),
    "a number of sizes": lambda x: x * x.size(0) + torch.arange(x.size(1), device=x.device),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_set_of_kernels(name):
    function = PROGRAMS[name]
    oxyfuel.reset()
    compiled = oxyfuel.compile(function)
    for size in SIZES:
        x = torch.randn(size, device="cuda")
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-4)
    metrics = oxyfuel.metrics()
    assert not metrics["breaks"] and metrics["graphs"] <= 4, metrics["recompile_reasons"]


def test_gradients():
    def step(function, x):
        x = x.clone().requires_grad_()
        loss = function(x).square().mean()
        loss.backward()
        return loss.detach(), x.grad

    def function(x):
        return torch.nn.functional.gelu(x @ x.t()).softmax(-1)

    compiled = oxyfuel.compile(function)
    for size in ((8, 16), (9, 16), (40, 33), (2, 7)):
        x = torch.randn(size, device="cuda")
        for actual, expected in zip(step(compiled, x), step(function, x)):
            torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3)


class Attention(torch.nn.Module):
    """With a bias of its own that is trained, if it has one."""

    def __init__(self, has_bias=False):
        super().__init__()
        self.project = torch.nn.Linear(64, 192)
        self.out = torch.nn.Linear(64, 64)
        self.bias = torch.nn.Parameter(torch.randn(4, 160, 160)) if has_bias else None

    def forward(self, x, is_causal=False):
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, 4, 16).permute(2, 0, 3, 1, 4)
        bias = None if self.bias is None else self.bias[:, :length, :length].expand(batch, 4, length, length)
        a = F.scaled_dot_product_attention(q, k, v, bias, is_causal=is_causal)
        return self.out(a.transpose(1, 2).reshape(batch, length, 64))


def check_attention(backend, has_bias=False, **options):
    """Gradients for lengths that change: two compilations, no metadata from PyTorch's meta kernels, eager's errors at most twice."""
    torch.manual_seed(2)
    model = Attention(has_bias).cuda().bfloat16()
    exact = Attention(has_bias).cuda().double()
    exact.load_state_dict(model.state_dict())
    oxyfuel.reset()
    compiled = oxyfuel.compile(model)

    def gradients(function, model, x):
        model.zero_grad()
        x = x.clone().requires_grad_()
        result = function(x, **options)
        result.float().square().sum().backward()
        return [result.detach(), x.grad, *(p.grad for p in model.parameters())]

    for batch, length in ((4, 24), (4, 40), (3, 56), (2, 136), (5, 19)):
        x = torch.randn(batch, length, 64, device="cuda").bfloat16()
        reference = gradients(exact, exact, x.double())
        with sdpa_kernel(backend):
            actual, expected = gradients(compiled, model, x), gradients(model, model, x)
        for mine, other, truth in zip(actual, expected, reference, strict=True):
            scale = truth.norm() + 1e-6
            assert (mine - truth).norm() / scale <= 2 * (other - truth).norm() / scale + 2e-2
    metrics = oxyfuel.metrics()
    assert not metrics["breaks"] and metrics["recompiles"] <= 2, metrics["recompile_reasons"]
    assert metrics["shape_fallbacks"] == 0, metrics["shape_fallback_names"]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("backend", [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION], ids=str)
def test_attention_in_training(backend, is_causal):
    check_attention(backend, is_causal=is_causal)


def test_attention_with_a_bias_that_is_trained():
    check_attention(SDPBackend.EFFICIENT_ATTENTION, has_bias=True)
