"""Training whose first batch has one row: the graph serves every other batch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import oxyfuel


class Block(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads, self.norm, self.qkv, self.out = heads, nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        return x + F.gelu(self.out(mixed))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        return (x + F.relu(self.second(self.norm(x)))).mean((2, 3))


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), (8,)),
    "attention": (lambda: nn.Sequential(Block(), Block()), (5, 16)),
    "images": (Residual, (3, 8, 8)),
    "tokens": (lambda: nn.Sequential(nn.Embedding(30, 16), Block(), nn.Linear(16, 30)), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_graph(name):
    oxyfuel.reset()
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model, twin = make(), make()
    twin.load_state_dict(model.state_dict())
    compiled = oxyfuel.compile(model, dynamic=True, fullgraph=True)
    for batch in (1, 8, 3, 1):
        x = torch.randint(0, 30, (batch, 5)) if shape is None else torch.randn(batch, *shape)
        for called in (compiled, twin):
            called.zero_grad()
            called(x).square().mean().backward()
        for ours, eagers in zip(model.parameters(), twin.parameters()):
            torch.testing.assert_close(ours.grad, eagers.grad, rtol=1e-4, atol=1e-5)
    assert oxyfuel.metrics()["graphs"] == 1


class Wide(torch.autograd.Function):
    """Its gradient has more rows than its argument: autograd sums them."""

    @staticmethod
    def forward(ctx, x, rows):
        ctx.rows = rows
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return (2 * gradient).expand(ctx.rows, *gradient.shape[1:]), None


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_gradient_of_more_rows_is_summed(dynamic):
    oxyfuel.reset()

    def program(x, y):
        return Wide.apply(x, y.shape[0]).sum() + y.sum()

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for rows in (4, 7, 5):
        x, y = torch.ones(1, 3, requires_grad=True), torch.ones(rows, 2)
        compiled(x, y).backward()
        assert torch.equal(x.grad, torch.full((1, 3), 2.0 * rows))
