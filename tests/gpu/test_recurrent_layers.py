"""LSTM, GRU and RNN, which cuDNN computes: one graph in inference, and a break where there are gradients."""

import pytest
import torch
from torch import nn

import oxyfuel

CUDA = torch.device("cuda")
KINDS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}


class Tagger(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.inner = KINDS[kind](48, 32, num_layers=2, **options)
        self.outer = nn.Linear(64 if options.get("bidirectional") else 32, 5)

    def forward(self, x):
        states, last = self.inner(x * 2)
        return self.outer(states).relu(), last


def flat(result):
    outer, last = result
    return [outer, *(last if isinstance(last, tuple) else [last])]


def assert_same(ours, eagers, **tolerance):
    for mine, other in zip(flat(ours), flat(eagers), strict=True):
        torch.testing.assert_close(mine, other, **tolerance)
        assert mine.stride() == other.stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bidirectional": True}, {"bias": False}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_inference_is_one_graph(kind, options, dtype):
    model = Tagger(kind, **options).to(CUDA, dtype).eval()
    compiled = oxyfuel.compile(model, fullgraph=True)
    with torch.no_grad():
        for sizes in [(7, 3)] * 4 + [(9, 4), (5, 2), (1, 1)]:
            x = torch.randn(*sizes, 48, device=CUDA, dtype=dtype)
            assert_same(compiled(x), model(x), atol=1e-2, rtol=1e-2)
    assert oxyfuel.metrics()["calls_eager"] == 0 and oxyfuel.metrics()["graphs"] <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_training(kind):
    torch.manual_seed(1)
    ours, eagers = Tagger(kind, dropout=0.0).to(CUDA), Tagger(kind, dropout=0.0).to(CUDA)
    eagers.load_state_dict(ours.state_dict())
    compiled = oxyfuel.compile(ours)
    for _ in range(4):
        x = torch.randn(7, 3, 48, device=CUDA)
        for model in (compiled, eagers):
            model(x)[0].square().mean().backward()
        for mine, other in zip(ours.parameters(), eagers.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, other.grad, atol=1e-4, rtol=1e-2)
            mine.grad = other.grad = None
    assert any("cuDNN" in record["reason"] for record in oxyfuel.metrics()["breaks"])
