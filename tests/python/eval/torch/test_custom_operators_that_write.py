"""Operators of the program's own that write their arguments, or return them or views of them."""

import pytest
import torch
from custom_operators import called, check, library, name, of, reasons  # noqa: F401
from torch import Tensor

import oxyfuel


def written(name):
    @torch.library.custom_op(name, mutates_args={"x"})
    def op(x: Tensor, y: Tensor, factor: float) -> None:
        x.add_(y * factor)

    return op


@pytest.mark.parametrize("where", ["input", "view", "strided", "made here", "twice"])
def test_what_an_operator_writes(name, where):
    op = written(name)

    def f(x, y):
        if where == "made here":
            x = x * 1
        part = {"view": x[1:3], "strided": x.t()[::2].t()}.get(where, x)
        other = {"view": y[1:3], "strided": y.t()[::2].t()}.get(where, y)
        op(part, other, 2.0)
        if where == "twice":
            x.mul_(2)
            op(part, other, 0.5)
        return x * 3, part.sum()

    check(f, torch.randn(4, 6), torch.randn(4, 6))
    assert called(name) == (2 if where == "twice" else 1)


def test_written_lists_and_optional_tensors(name):
    @torch.library.custom_op(name, mutates_args={"xs", "maybe"})
    def op(xs: list[Tensor], maybe: Tensor | None, y: Tensor) -> Tensor:
        for x in xs:
            x.mul_(y)
        if maybe is not None:
            maybe.copy_(y)
        return y + len(xs)

    op.register_fake(lambda xs, maybe, y: torch.empty_like(y))
    x, y = torch.randn(3), torch.randn(3)

    def f(a, b, c):
        z = op([a, b], c, y * 2)
        return z, op([b], None, z), a + b

    check(f, x, x + 1, x + 2)


def test_tensors_that_share_memory_with_what_is_written(name):
    op = written(name)

    def f(x):
        x = x * 1
        op(x[1:3], x[2:4], 2.0)
        return x

    check(f, torch.randn(6), whole=False)
    assert "share memory" in reasons()


def test_a_written_argument_that_is_returned(library):
    library.define("add_one_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("add_one_", lambda x: x.add_(1), "CPU")

    def f(x):
        y = of(library, "add_one_")(x)
        y.mul_(2)
        return y, x.sum()

    check(f, torch.randn(4))


def test_a_result_that_is_a_view(library):
    seen = []
    library.define("flat(Tensor(a) x) -> Tensor(a)")
    library.impl("flat", lambda x: (seen.append(1), x.view(-1))[1], "CPU")
    library.impl("flat", lambda x: x.view(-1), "Meta")

    def f(x):
        y = x * 2
        flat = of(library, "flat")(y)
        y.add_(1)
        flat[2:].mul_(3)
        return y, flat, of(library, "flat")(x)

    with torch.no_grad():
        check(f, torch.randn(2, 3))
    assert len(seen) == 12
    x = torch.randn(2, 3)
    assert oxyfuel.compile(f)(x)[2].data_ptr() == x.data_ptr()


# --- gradients
