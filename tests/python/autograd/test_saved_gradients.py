"""Gradients that the forward pass knows already, since no tangent changes them, are saved and handed out as copies."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel


def function(x, weight, signed):
    rows = torch.cat([x, x], 1).squeeze(1)
    return torch.copysign(signed, (F.linear(rows, weight) / 8).abs()), rows


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_gradient_that_is_saved(dynamic):
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for n, m in ((33, 64), (33, 64), (31, 16)):
        tensors = torch.randn(1, n), torch.randn(m, 2 * n), torch.randn(m)
        outcomes = []
        for f in (function, compiled):
            leaves = [t.clone().requires_grad_() for t in tensors]
            result = f(*(leaf * 1 for leaf in leaves))[0]
            first = torch.autograd.grad(result.sum(), leaves, retain_graph=True)
            for gradient in first:
                gradient.add_(1)  # no later pass may see it
            outcomes.append((first, torch.autograd.grad(result.sum(), leaves)))
        torch.testing.assert_close(outcomes[1], outcomes[0])
