"""Operators of the program's own whose sizes vary: the fake function is given symbols, and one graph serves all sizes."""

import pytest
import torch
from size_checks import compiles, same
from torch import Tensor

import oxyfuel

NAMES = iter(range(1000))


@pytest.fixture
def name():
    oxyfuel.reset()
    return f"oxysizes::op{next(NAMES)}"


def rows(name, fake):
    """The sums of pairs of rows, through a fake function."""

    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor, w: Tensor) -> Tensor:
        return (x[0::2] + x[1::2]) @ w

    op.register_fake(fake)
    return op


def halves(x, w):
    assert x.dim() == 2, f"{tuple(x.shape)}"
    return torch.empty(x.size(0) // 2, w.size(1), dtype=x.dtype, device=x.device)


def product(x, w):
    return x.view(-1, 2, x.size(1)).sum(1) @ w


@pytest.mark.parametrize("fake", [halves, product])
@pytest.mark.parametrize("grad", [False, True])
def test_the_second_compilation_serves_all_sizes(name, fake, grad):
    op, w = rows(name, fake), torch.randn(4, 3)
    if grad:
        op.register_autograd(
            lambda ctx, gradient: ((gradient @ ctx.saved_tensors[0].t()).repeat_interleave(2, 0), None),
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[1]),
        )

    def function(x):
        return op(x.sin(), w) * 2

    compiled = oxyfuel.compile(function)

    def check(n):
        ours, eagers = (torch.randn(n, 4, generator=torch.Generator().manual_seed(n)).requires_grad_(grad) for _ in range(2))
        actual, expected = compiled(ours), function(eagers)
        same(actual, expected)
        if grad:
            for result in (actual, expected):
                result.square().sum().backward()
            same(ours.grad, eagers.grad)

    for n in (6, 10):
        check(n)
    assert compiles(lambda: [check(n) for n in (4, 6, 12, 20)]) == 0
    assert oxyfuel.metrics()["graphs"] == 2 and not oxyfuel.metrics()["breaks"]


def test_what_a_fake_function_asks_is_guarded(name):
    def fake(x):
        return x.new_empty(x.size(0)) if x.size(0) > 8 else x.new_empty(x.size(0), 2)

    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x.sum(1) if x.size(0) > 8 else x.clone()

    op.register_fake(fake)
    compiled = oxyfuel.compile(lambda x: op(x + 1), dynamic=True)

    def check(n):
        x = torch.randn(n, 2)
        same(compiled(x), op(x + 1))

    assert compiles(lambda: check(5)) == 1
    assert compiles(lambda: check(3)) == 0
    assert compiles(lambda: check(12)) == 1
    assert compiles(lambda: [check(n) for n in (40, 4, 9, 8)]) == 0


def test_a_fake_function_that_takes_the_number_is_asked_for_each(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x.new_ones(len(str(x.size(0))))

    op.register_fake(lambda x: x.new_empty(len(str(int(x.size(0))))))
    compiled = oxyfuel.compile(lambda x: op(x + 1) + 1, dynamic=True)
    for n in (5, 7, 12, 5):
        same(compiled(torch.randn(n)), op(torch.randn(n)) + 1)


def test_sizes_of_data_reach_a_fake_function(name):
    op, w = rows(name, halves), torch.randn(4, 3)

    def function(x):
        kept = x[x[:, 0] > 0]
        return op(torch.cat([kept, kept]), w)

    compiled = oxyfuel.compile(function, dynamic=True)
    for n in (5, 9, 20):
        x = torch.randn(n, 4)
        same(compiled(x), function(x))
    assert oxyfuel.metrics()["graphs"] == 1


def test_an_operator_that_writes(name):
    @torch.library.custom_op(name, mutates_args=("out",))
    def op(x: Tensor, out: Tensor) -> Tensor:
        out.copy_(x * 2)
        return x.sum(1)

    op.register_fake(lambda x, out: x.new_empty(x.size(0)))

    def function(x):
        out = torch.zeros_like(x)
        return op(x + 1, out), out + 1

    compiled = oxyfuel.compile(function)
    for n in (3, 5):
        compiled(torch.randn(n, 4))
    for n in (2, 7, 9):
        x = torch.randn(n, 4)
        same(compiled(x), function(x))
    assert oxyfuel.metrics()["graphs"] == 2
