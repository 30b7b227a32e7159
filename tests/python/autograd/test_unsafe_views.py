"""Results that are read through unsafe_split() and the like: autograd does not notice it if they are written to."""

import pytest
import torch

import oxyfuel

VIEWS = {
    "unsafe_chunk": lambda v: v.unsafe_chunk(2, -1)[0],
    "unsafe_split": lambda v: v.unsafe_split(3, 0)[1],
    "unsafe_split_with_sizes": lambda v: v.unsafe_split_with_sizes([1, 3])[1],
    "a view of it": lambda v: v.unsafe_split(2)[1].view(-1),
}
USES = {
    "norm": lambda v, w: w.norm(1),
    "square": lambda v, w: w.square().sum(),
    "product with itself": lambda v, w: (w * w.sin()).sum(),
    "both": lambda v, w: w.square().sum() + v.exp().sum(),
    "exp": lambda v, w: w.exp(),
}


def gradient(function, written):
    leaf = torch.linspace(-2, 2, 16).view(4, 4).requires_grad_()
    v, used = function(leaf * 1.5)
    if written:
        with torch.no_grad():
            v.mul_(3)
    return torch.autograd.grad(used.sum(), leaf)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("view", VIEWS)
def test_gradients_are_those_of_the_forward_pass(view, use):
    """Eager's own are of some values before the write and of others behind it."""

    def function(x):
        v = x * 2
        return v, USES[use](v, VIEWS[view](v))

    compiled = oxyfuel.compile(function, fullgraph=True)
    expected = gradient(function, written=False)
    torch.testing.assert_close(gradient(compiled, written=False), expected)
    torch.testing.assert_close(gradient(compiled, written=True), expected)


def test_what_is_read_otherwise_is_checked():
    def function(x):
        v = x * 2
        return v, (v.unsafe_chunk(2)[0] * v[:2] * v[2:]).sum()

    for compiled in (function, oxyfuel.compile(function)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            gradient(compiled, written=True)
