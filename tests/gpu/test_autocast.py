"""Autocast inside of a compiled function, whose context asks what the card can do."""

import pytest
import torch
from torch import nn

import oxyfuel

if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

CALLS = 4  # the third one records its work, and the one behind it replays it


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("trains", [False, True])
def test_contexts(dtype, trains):
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 8)).cuda()
    x = torch.randn(16, 64, device="cuda")

    def function(x):
        model.zero_grad()
        with torch.autocast("cuda", dtype):
            y = model(x)
            with torch.autocast("cuda", enabled=False):
                z = y.float() @ y.float().t()
        loss = z.float().square().mean()
        if trains:
            loss.backward()
        return loss.detach(), y.detach(), *([p.grad for p in model.parameters()] if trains else [])

    expected = function(x)
    compiled = oxyfuel.compile(function, fullgraph=True)
    for _ in range(CALLS):
        results = compiled(x)
        assert [r.dtype for r in results] == [e.dtype for e in expected]
        torch.testing.assert_close(results, expected, rtol=3e-2, atol=3e-2)


def test_questions_about_the_card():
    def function(x):
        major, minor = torch.cuda.get_device_capability()
        if torch.cuda.is_available() and torch.cuda.is_bf16_supported() and torch.cuda.device_count() > 0:
            x = x.bfloat16()
        return x * (10 * major + minor), torch.cuda.get_device_name()

    x = torch.ones(4, device="cuda")
    ours, eager = oxyfuel.compile(function, fullgraph=True)(x), function(x)
    assert torch.equal(ours[0], eager[0]) and ours[1:] == eager[1:]
