"""Operators of the program's own, and comparisons of calls with eager, for the tests of such operators."""

import itertools

import pytest
import torch
from torch import Tensor

import oxyfuel

numbers = itertools.count()


@pytest.fixture
def name():
    return f"oxycustom::op{next(numbers)}"


@pytest.fixture
def library():
    with torch.library._scoped_library(f"oxycustom{next(numbers)}", "FRAGMENT") as made:
        yield made


def of(library, name):
    return getattr(getattr(torch.ops, library.ns), name)


def doubled(name, fake=torch.empty_like, formula=True):
    """An operator that doubles, and the list of what its kernel was given."""
    seen = []

    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        seen.append(x.detach().clone())
        return x * 2

    if fake:
        op.register_fake(fake)
    if formula:
        op.register_autograd(lambda ctx, grad: grad * 2)
    return op, seen


def tensors_in(value):
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def check(f, *arguments, calls=3, whole=True, backward=False):
    """Compares `calls` calls with eager: results, strides, arguments, gradients."""
    copies = [[a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in arguments]
              for _ in range(2)]
    compiled = oxyfuel.compile(f, fullgraph=whole)
    for _ in range(calls):
        actual, expected = tensors_in(compiled(*copies[0])), tensors_in(f(*copies[1]))
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            torch.testing.assert_close(a, e)
            assert a.stride() == e.stride() and a.requires_grad == e.requires_grad
        if backward:
            for results in (actual, expected):
                sum((r * r).sum() for r in results if r.requires_grad).backward()
    for a, e in zip(*copies):
        if isinstance(a, Tensor):
            torch.testing.assert_close(a, e)
            if backward and e.requires_grad:
                torch.testing.assert_close(a.grad, e.grad)
    if whole:
        assert oxyfuel.metrics()["graphs"] == 1 and not oxyfuel.metrics()["breaks"]


def reasons():
    return " ".join(b["reason"] for b in oxyfuel.metrics()["breaks"])


def called(name):
    return oxyfuel.metrics()["extern_names"].get(name, 0)


# --- calls
