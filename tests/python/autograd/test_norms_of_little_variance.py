"""Norms in half precision of elements that differ by less than what rounding changes: the mean is that of the rounded ones."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

NORMS = {
    "layer": lambda x: F.layer_norm(x, x.shape[-1:]),
    "layer with parameters": lambda x: F.layer_norm(x, x.shape[-1:], x.new_full(x.shape[-1:], 2), x.new_full(x.shape[-1:], 3)),
    "layer of a single row": lambda x: F.layer_norm(x[:1], x[:1].shape),
    "group": lambda x: F.group_norm(x.view(5, 8, -1), 8).view(x.shape),
    "batch": lambda x: F.batch_norm(x.t(), None, None, training=True) if x.shape[1] > 1 else x,
}
# In the last two, what gradients need of the inner result is saved, and the outer one is computed again from it.
COMPUTED = {
    "root": lambda x: (x.abs() + 1).sqrt(),
    "quotient": lambda x: 1 / (x.abs() + 3),
    "sigmoid": torch.sigmoid,
    "logit of a sigmoid": lambda x: torch.logit(x.sigmoid(), 1e-3),
    "cosine of a root": lambda x: (x.abs() + 1).sqrt().cos(),
    "multiple of a root": lambda x: (x * x * 2 + x.abs()).sqrt() * 3,
}


@pytest.mark.parametrize("is_whole_step", [False, True], ids=["passes", "whole step"])
@pytest.mark.parametrize("options", [{}, {"wait": False}], ids=["compiled", "interpreted at first"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("computed", COMPUTED)
@pytest.mark.parametrize("norm", NORMS)
def test_gradients_of_equal_elements_are_zero(norm, computed, dtype, options, is_whole_step):
    """The deviation from the mean is 0, and 1 / sqrt(eps) times any other one would be seen."""
    function = lambda x: NORMS[norm](COMPUTED[computed](x))  # noqa: E731
    for columns in (1, 4):
        x = torch.randn(40, 1, generator=torch.Generator().manual_seed(columns)).to(dtype).expand(40, columns).clone().requires_grad_()
        oxyfuel.reset()
        upstream = torch.randn(function(x).shape, generator=torch.Generator().manual_seed(9)).to(dtype)

        def step(function):
            return torch.autograd.grad(function(x), x, upstream)[0].float()

        compiled = oxyfuel.compile(lambda: step(function), options=options) if is_whole_step else None
        gradients = [step(function), compiled() if compiled else step(oxyfuel.compile(function, options=options))]
        exact = torch.autograd.grad(function(x.double()), x, upstream.double())[0].float()
        off = [(gradient - exact).abs().max().item() for gradient in gradients]
        assert off[1] <= 2 * off[0] + 0.01 * exact.abs().max().item(), off
