"""Backward passes inside of compiled functions, of tensors whose history, hooks or values come from outside."""

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program


def ones():
    return torch.ones(3, requires_grad=True)


def hooked(tensor, times=7):
    tensor.register_hook(lambda gradient: gradient * times)
    return tensor


def keeping(tensor):
    tensor.retain_grad()
    return tensor


def followed(tensor):
    tensor.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(5))
    return tensor


def pair(x, follow):
    return x, follow(x)


# Two tensors, the second of which may depend on the first, or the first on the second.
PAIRS = {
    "two leaves": lambda: (ones(), torch.full((3,), 2.0, requires_grad=True)),
    "a leaf and what follows": lambda: pair(ones(), lambda x: x * 2),
    "a view": lambda: pair(ones(), lambda x: x[:]),
    "the other way round": lambda: pair(ones(), lambda x: x * 2)[::-1],
    "two results": lambda: (lambda x: (x * 2, x * 6))(ones()),
    "a chain": lambda: pair(ones() * 2, lambda x: x * 3),
    "no gradient": lambda: (ones(), torch.full((3,), 2.0)),
    "a hook on the leaf": lambda: pair(hooked(ones()), lambda x: x * 2),
    "a hook on the result": lambda: pair(hooked(ones() * 2), lambda x: x + 1),
    "a hook on the second": lambda: (ones(), hooked(ones() * 4)),
    "a kept gradient": lambda: pair(keeping(ones() * 2), lambda x: x * 3),
    "a hook behind the leaf": lambda: pair(followed(ones()), lambda x: x * 2),
}


def sum_of_product(x, y):
    return (x * y).sum()


def grad_of_first(x, y):
    return torch.autograd.grad(sum_of_product(x, y), x)


def grad_of_both(x, y):
    return torch.autograd.grad(sum_of_product(x, y), [x, y], allow_unused=True)


def grad_through_the_second(x, y):
    return torch.autograd.grad(y.sum(), x, allow_unused=True)


def grad_or_zeros(x, y):
    return torch.autograd.grad(y.sum(), x, allow_unused=True, materialize_grads=True)


def grad_of_a_result(x, y):
    z = x * y
    return torch.autograd.grad((z * z).sum(), z)


def grad_of_a_detached(x, y):
    z = (x.detach() * 2).requires_grad_()
    return torch.autograd.grad((z * y).sum(), z)


def grad_of_a_hooked_result(x, y):
    z = x * 2
    z.register_hook(lambda gradient: gradient * 3)
    return torch.autograd.grad(sum_of_product(z, y), [x, z])


def grad_of_a_kept_result(x, y):
    z = x * 2
    z.retain_grad()
    return torch.autograd.grad(z.sum(), z), z.grad


def backward(x, y):
    sum_of_product(x, y).backward()


def backward_into_the_first(x, y):
    sum_of_product(x, y).backward(inputs=[x])


def backward_of_the_second(x, y):
    y.sum().backward()


def backward_of_a_hooked_result(x, y):
    z = x * 2
    z.register_hook(lambda gradient: gradient * 3)
    sum_of_product(z, y).backward()


def what_autograd_knows(x, y):
    return [(t.is_leaf, t.grad_fn is None, t.retains_grad) for t in (x, y)], x + y


def write_to_the_first(x, y):
    x.add_(1)
    return x * y


PASSES = [
    grad_of_first,
    grad_of_both,
    grad_through_the_second,
    grad_or_zeros,
    grad_of_a_result,
    grad_of_a_detached,
    grad_of_a_hooked_result,
    grad_of_a_kept_result,
    backward,
    backward_into_the_first,
    backward_of_the_second,
    backward_of_a_hooked_result,
    what_autograd_knows,
    write_to_the_first,
]


@pytest.mark.parametrize("order", [list(PAIRS), list(PAIRS)[::-1]], ids=["forwards", "backwards"])
@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
@program(grad=True, options={"recompile_limit": 40})
def test_history_from_before_the_region(compile, run, order):
    compiled = compile(run)
    answers = []
    for name in order * 2:
        given = PAIRS[name]()
        answers.append((outcome(compiled, *given), [t.grad for t in given if t.is_leaf]))
    return answers


def test_the_reason_names_the_leaf():
    f = oxyfuel.compile(lambda x: torch.autograd.grad((x * x).sum(), x)[0])
    f(ones()), f(ones() * 2)
    assert "leaf of autograd's graph: was true, is false" in str(oxyfuel.metrics()["recompile_reasons"])


@program(grad=True)
def test_writes_to_what_the_backward_pass_needs(compile):
    weight, scale, shared = ones(), torch.ones(3), torch.ones(2, 3).t()

    def reset():
        with torch.no_grad():
            weight.fill_(1.0), scale.fill_(1.0), shared.fill_(1.0)
        weight.grad = None

    @compile
    def written_under_no_grad(x):
        with torch.no_grad():
            weight.mul_(1.5)
        return x * weight

    @compile
    def written(x):
        scale.add_(x.detach()[0])
        return (x * scale).sin()

    @compile
    def written_in_part(x):
        scale[:2].add_(1)
        return x * scale

    @compile
    def transposed(x):
        shared.mul_(2)
        return x @ shared

    @compile
    def needed_in_part(x):
        scale.add_(1)
        return x * scale.cos()

    def write():
        with torch.no_grad():
            weight.mul_(2), scale.mul_(2), shared.mul_(2)

    def attempt(f, between):
        reset()
        x = torch.full((2, 3), 0.5, requires_grad=True)
        y = f(x)
        between()
        kind, *rest = outcome(lambda: y.sum().backward())
        return kind, "modified by an inplace operation" in str(rest), x.grad, weight.grad, scale.clone(), shared.clone()

    functions = written_under_no_grad, written, written_in_part, transposed, needed_in_part
    return [attempt(f, between) for f in functions for between in (lambda: None, write) for _ in range(2)]
