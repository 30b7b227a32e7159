"""Fused attention of sizes that change: PyTorch's kernels are not given tensors without elements, by whose sizes they divide."""

import itertools

import pytest
import torch
from size_checks import compiles, same
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


def laid_out(sizes, permutation):
    """A tensor of these sizes whose strides are in the order of `permutation`, the innermost one last."""
    return torch.randn([sizes[d] for d in permutation]).permute([permutation.index(d) for d in range(len(sizes))])


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("permutation", list(itertools.permutations(range(4))), ids=str)
def test_strides_of_narrow_heads_are_those_of_eager(permutation, dynamic):
    """PyTorch looks at the stride of a width of 1 when it chooses the kernel, and so the layout of the result."""
    programs = [
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        lambda x: F.scaled_dot_product_attention(x.sin(), x.sin(), x.sin()) / 8,
        lambda x: F.scaled_dot_product_attention(torch.special.log_ndtr(x[..., :1]), x[..., :1], x[..., :1].cos()),
    ]
    for program in programs:
        for sizes in ([(5, 6, 4, 1), (5, 6, 7, 1), (5, 6, 4, 3)], [(2, 3, 5, 4), (2, 3, 5, 1), (1, 3, 1, 1), (3, 2, 4, 8)]):
            oxyfuel.reset()
            compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
            for size in sizes:
                x = laid_out(size, permutation)
                same(compiled(x), program(x))


def test_heads_of_a_width_of_weights_are_compiled_once():
    weight = torch.randn(12, 24)

    def program(x):
        heads = (x @ weight).unflatten(-1, (3, 8)).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(2)

    compiled = oxyfuel.compile(program, dynamic=True)

    def calls():
        for batch, length in ((8, 5), (1, 5), (8, 1), (1, 1), (3, 7)):
            x = torch.randn(batch, length, 12)
            torch.testing.assert_close(compiled(x), program(x))

    assert compiles(calls) == 1
