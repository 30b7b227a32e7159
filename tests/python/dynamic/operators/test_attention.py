"""Fused attention of sizes that change: PyTorch's kernels are not given tensors without elements, by whose sizes they divide."""

import itertools

import pytest
import torch
from torch.nn import functional as F

import oxyfuel

FULL = {"batch": 2, "heads": 3, "queries": 5, "keys": 7, "width": 4}
EMPTY = [{**FULL, **dict.fromkeys(names, 0)} for count in (1, 2) for names in itertools.combinations(FULL, count)]


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()


def operands(sizes, requires_grad):
    batch, heads, queries, keys, width = sizes.values()
    shapes = (batch, heads, queries, width), (batch, heads, keys, width), (batch, heads, keys, width)
    return [torch.randn(shape, requires_grad=requires_grad) for shape in shapes]


def check(function, compiled, sizes, requires_grad):
    given = operands(sizes, requires_grad)
    ours, eager = compiled(*given), function(*given)
    torch.testing.assert_close(ours, eager)
    if requires_grad:
        for left, right in zip(torch.autograd.grad(ours.sum(), given), torch.autograd.grad(eager.sum(), given)):
            torch.testing.assert_close(left, right)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_without_elements(causal, requires_grad):
    def function(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal)

    compiled = oxyfuel.compile(function, dynamic=True, options={"recompile_limit": 64})
    check(function, compiled, FULL, requires_grad)
    for sizes in EMPTY:
        check(function, compiled, sizes, requires_grad)
    check(function, compiled, {**FULL, "queries": 9, "keys": 9}, requires_grad)
    assert not oxyfuel.metrics()["breaks"]


@pytest.mark.parametrize("sizes", EMPTY[:5], ids=lambda sizes: next(name for name, size in sizes.items() if not size))
def test_empty_first(sizes):
    function = F.scaled_dot_product_attention
    compiled = oxyfuel.compile(function, dynamic=True)
    check(function, compiled, sizes, True)
    check(function, compiled, FULL, True)
