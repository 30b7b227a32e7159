"""Gradients of operators of the program's own: formulas, and backward passes without one."""

import pytest
import torch
from custom_operators import called, check, doubled, library, name, of, reasons  # noqa: F401
from torch import Tensor

import oxyfuel


def test_a_formula_is_recorded(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor, factor: float = 2.0, *, text: str = "a") -> Tensor:
        return x.sin() * factor

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.factor, ctx.text = inputs[1], keyword_only_inputs["text"]

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert ctx.text == "b" and ctx.needs_input_grad[0]
        return grad * x.cos() * ctx.factor, None

    op.register_fake(lambda x, factor=2.0, *, text="a": torch.empty_like(x))
    op.register_autograd(backward, setup_context=setup)
    check(lambda x: (op(x * 2, text="b") + op(x, 3.0, text="b")), torch.randn(3, 4).requires_grad_(), backward=True)
    assert called(name) == 2


def test_what_a_formula_reads_is_guarded(name):
    op, _ = doubled(name, formula=False)
    scale = 2.0

    def scaled(grad):
        return grad * scale

    op.register_autograd(lambda ctx, grad: scaled(grad))
    f, x = oxyfuel.compile(lambda x: op(x).sum()), torch.randn(3, requires_grad=True)
    for scale in (2.0, 5.0, 2.0):
        x.grad = None
        f(x).backward()
        assert x.grad.tolist() == [scale] * 3


def test_lists_with_gradients(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(xs: list[Tensor]) -> list[Tensor]:
        return [x * 2 for x in xs]

    op.register_fake(lambda xs: [torch.empty_like(x) for x in xs])
    op.register_autograd(lambda ctx, grads: [grad * 2 for grad in grads])
    x, y = torch.randn(3).requires_grad_(), torch.randn(2, 2).requires_grad_()
    check(lambda x, y: op([x, y.sin()]), x, y, backward=True)


def test_a_backward_pass_of_another_operator(name):
    @torch.library.custom_op(name + "_backward", mutates_args=())
    def backward(grad: Tensor, x: Tensor) -> Tensor:
        return grad * 2 * x

    @torch.library.custom_op(name, mutates_args=())
    def square(x: Tensor) -> Tensor:
        return x * x

    backward.register_fake(lambda grad, x: torch.empty_like(x))
    square.register_fake(torch.empty_like)
    square.register_autograd(lambda ctx, grad: backward(grad, *ctx.saved_tensors),
                             setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    check(lambda x: square(x + 1).exp(), torch.randn(5).requires_grad_(), backward=True)
    assert called(name) == 1 and called(name + "_backward") == 1


def test_gradients_of_gradients(name):
    @torch.library.custom_op(name, mutates_args=())
    def square(x: Tensor) -> Tensor:
        return x * x

    square.register_fake(torch.empty_like)
    square.register_autograd(lambda ctx, grad: grad * 2 * ctx.saved_tensors[0],
                             setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    x = torch.randn(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(oxyfuel.compile(lambda x: square(x) * x)(x).sum(), x, create_graph=True)
    gradient.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())


def test_a_formula_of_a_library(library):
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    qualified = f"{library.ns}::twice"
    torch.library.register_fake(qualified, torch.empty_like, lib=library)
    x = torch.randn(3).requires_grad_()
    check(lambda x: of(library, "twice")(x) * 3, x, whole=False)
    assert f"{qualified} has no formula for gradients" in reasons()
    oxyfuel.reset()
    check(lambda x: of(library, "twice")(x.detach()) * 3, x)
    torch.library.register_autograd(qualified, lambda ctx, grad: grad * 2, lib=library)
    oxyfuel.reset()
    check(lambda x: of(library, "twice")(x * x) * 3, x, backward=True)


def test_without_a_formula(name):
    op, _ = doubled(name, formula=False)
    x = torch.randn(3).requires_grad_()
    check(lambda x: op(x) * 3, x, whole=False)
    assert "has no formula for gradients" in reasons()
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        oxyfuel.compile(lambda x: op(x) * 3)(x).sum().backward()
    oxyfuel.reset()
    with torch.no_grad():
        check(lambda x: op(x) * 3, x)


def test_a_training_step(name):
    op, seen = doubled(name)
    weights = [torch.ones(4, requires_grad=True) for _ in range(2)]

    def step(x, weight):
        loss = op(x * weight).square().sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(0.01 * weight.grad)
        weight.grad = None
        return loss.detach()

    compiled, x = oxyfuel.compile(step, fullgraph=True), torch.randn(3, 4)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, weights[0]), step(x, weights[1]))
    torch.testing.assert_close(weights[0], weights[1])
    assert len(seen) == 6


def test_no_kernel_runs_again_in_the_backward_pass(name):
    op, seen = doubled(name)
    from torch.utils.checkpoint import checkpoint

    def f(x):
        return checkpoint(lambda t: op(t.sin()).cos(), x, use_reentrant=False)

    x = torch.randn(5, requires_grad=True)
    f(x).sum().backward()
    expected, x.grad = x.grad, None
    seen.clear()
    oxyfuel.compile(f, fullgraph=True)(x).sum().backward()
    torch.testing.assert_close(x.grad, expected)
    assert len(seen) == 1


# --- effects
