"""Sizes that change between calls, on a GPU: one set of kernels serves all of them."""

import pytest
import torch

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
