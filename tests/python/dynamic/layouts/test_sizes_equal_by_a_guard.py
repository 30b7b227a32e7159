"""Sizes that are other expressions of the same symbols, and equal (or 1) by a guard alone: parts of two tensors that meet in an
operator. Where a size is repeated, a guard says so; what is not known to differ is not repeated."""

import pytest
import torch
import torch.nn.functional as F
from size_checks import same

import oxyfuel


def pointwise(a, b):
    return (a[..., :4] * b[..., 4:]).cos() + torch.where(a[..., 1:5] > 0, b[..., 4:], a[..., :4])


def ternary(a, b):
    ratio = torch.addcdiv(a[..., :4], b[..., 4:], a[..., 1:5].exp())
    return torch.addcmul(ratio, b[..., 4:], a[..., 1:5]) + torch.lerp(a[..., :4], b[..., 4:], 0.3)


def written(a, b):
    y = a + 1
    y[..., :4] = b[..., 4:]
    return y


def updated(a, b):
    y = a * 2
    y[..., 2:6] += b[..., 4:]
    y.select(0, 1)[..., :4].copy_(b[0, ..., 4:])
    y[..., :4].masked_fill_(b[..., 4:] > 1, 3.0)
    return y.sin()


def of_one_tensor(a, b):
    y = a * b[..., :1]
    y[..., :4] = y[..., 4:]
    return y


def losses(a, b):
    first, second = a[..., :4], b[..., 4:]
    probability = second.expand_as(first).sigmoid()
    return F.smooth_l1_loss(first, second, reduction="none") + F.binary_cross_entropy_with_logits(first, probability) + (first - second).pow(2).mean()


def normed(a, b):
    difference = a[..., :4] - b[..., 4:]
    return F.layer_norm(difference, difference.shape[-1:]) + F.softmax(b[..., 4:], -1)


def products(a, b):
    return a[..., :4] @ b[..., 4:].expand_as(a[..., :4]).mT


PROGRAMS = [pointwise, ternary, written, updated, of_one_tensor, losses, normed, products]


def outcome(function, a, b):
    """Result and gradients, of copies of the inputs."""
    a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
    result = function(a, b)
    weights = torch.linspace(0, 1, result.numel()).view(result.shape)  # an eager norm in single precision is off by 1e-5 of large ones
    gradients = torch.autograd.grad((result * weights).sum(), (a, b), allow_unused=True)
    return result.detach(), *gradients


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("program", PROGRAMS)
def test_parts_of_tensors_meet(program, dynamic):
    oxyfuel.reset()
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for rows, columns in ((5, 8), (3, 8), (3, 5), (4, 5), (1, 8), (5, 8)):
        torch.manual_seed(rows + columns)
        a, b = torch.randn(2, rows, 8), torch.randn(2, rows, columns)
        same(compiled(a, b), program(a, b))
        same(outcome(compiled, a, b), outcome(program, a, b))
