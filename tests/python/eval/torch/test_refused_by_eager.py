"""Calls that eager refuses, though shapes and types alone would let them pass, and values at the edge."""

import pytest
import torch
import torch.nn.functional as F

from eager_comparison import outcome, program

INT16 = torch.tensor([0, 1], dtype=torch.int16)
MASK = torch.tensor([True, False])


def set_masked(x):
    x.clone()[MASK] = 1.0
    return x + 1


def set_at_half(x):
    x.clone()[torch.tensor([0.5])] = 1.0
    return x + 1


def loss_that_nobody_reads(x):
    F.binary_cross_entropy(x * 3, x)
    return x + 1


def inverse_that_nobody_reads(x):
    torch.linalg.inv(x * 0)
    return x + 1


SQUARE = lambda: torch.ones(4, 4)
CALLS = {
    "short indices": (lambda x: x[INT16], SQUARE),
    "short indices of a write": (lambda x: x.index_put_((INT16,), torch.tensor(4.0)), SQUARE),
    "a mask of another shape": (set_masked, SQUARE),
    "floats as indices": (set_at_half, SQUARE),
    "a loss that nobody reads": (loss_that_nobody_reads, SQUARE),
    "an inverse that nobody reads": (inverse_that_nobody_reads, SQUARE),
    "clamp": (lambda x: x.clamp(), SQUARE),
    "clamp_": (lambda x: x.clamp_(None, None), SQUARE),
    "clamp of tensors": (lambda x: torch.clamp(x, None, None), SQUARE),
    "norm": (lambda x: x.norm(p=float("inf")), lambda: torch.ones(0, 4)),
    "norm of a dimension": (lambda x: torch.linalg.vector_norm(x, -1, dim=0), lambda: torch.ones(0, 4)),
    "norm of order two": (lambda x: torch.linalg.vector_norm(x, 2, dim=0), lambda: torch.ones(0, 4)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), lambda: torch.ones(0, 4)),
    "max_pool1d of integers": (lambda x: F.max_pool1d(x.long(), 2), SQUARE),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), lambda: torch.ones(2, 0, 4, 4)),
    "max_pool2d of nothing": (lambda x: F.max_pool2d(x, 2), lambda: torch.ones(0, 2, 4, 4)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), lambda: torch.ones(2, 0, 4, 4)),
    "scatter_ of itself": (lambda x: x.scatter_(0, torch.zeros_like(x, dtype=torch.long), x), SQUARE),
    "index_add_ of itself": (lambda x: x.index_add_(0, torch.arange(4), x), SQUARE),
    "index_copy_ of itself": (lambda x: x.index_copy_(0, torch.arange(4), x), SQUARE),
    "index_put_ of itself": (lambda x: x.index_put_((torch.arange(4),), x), SQUARE),
    "as_strided past the end": (lambda x: (x + 1).as_strided((2, 2), (1, 1), 15) * 1, SQUARE),
    "as_strided of too many": (lambda x: (x + 1).as_strided((17,), (1,)) * 1, SQUARE),
    "as_strided before the start": (lambda x: (x * 2).as_strided((2,), (1,), -1).shape, SQUARE),
    "as_strided inside": (lambda x: (x + 1).as_strided((2, 2), (4, 1), 5) * 1, SQUARE),
    "a float factor of integers, in place": (lambda x: x.add_(x, alpha=0.5), lambda: torch.arange(4)),
    "a float factor of integers": (lambda x: x.sub(x, alpha=0.5), lambda: torch.arange(4)),
    "negative limits of bytes": (lambda x: F.hardtanh(x, max_val=0.3), lambda: torch.arange(4, dtype=torch.uint8)),
    "a negative slope, and then in place": (lambda x: F.leaky_relu(x, -0.5) + F.leaky_relu(x * 1, -0.5, inplace=True), lambda: torch.ones(4)),
    "an elu of infinity": (lambda x: F.elu(x, float("inf")) + F.celu(x, float("inf")), lambda: torch.tensor([-1.0, 0.0, 2.0])),
    "a sum into an integer": (lambda x: torch.sum(x * 0.5, 0, out=torch.zeros(4, dtype=torch.long)), SQUARE),
    "a sum of truths": (lambda x: (x.sum(1, dtype=torch.bool), torch.prod(x * 0, dtype=torch.bool)), SQUARE),
    "a list of sizes for new_tensor": (lambda x: (x.new_tensor([1.5, 2]), x.long().new_tensor(3.7), x.new_tensor(2, dtype=torch.int8)), SQUARE),
}


@pytest.mark.parametrize("call", CALLS)
@program()
def test_eager_has_the_last_word(compile, call):
    function, make = CALLS[call]
    x = make()
    return outcome(compile(function), x), x


@program()
def test_zeros_keep_their_signs(compile):
    functions = [
        lambda x: (x * -0.0, x * 0.0),
        lambda x: (x.masked_fill(x > 0, 0.0), x.masked_fill(x > 0, -0.0)),
        lambda x: (torch.full((2,), 0.0) / x, torch.full((2,), -0.0) / x),
    ]
    x = torch.ones(2)
    return [[torch.signbit(part) for part in compile(function)(x)] for function in functions]


@program()
def test_random_tensors_of_random_parameters_are_contiguous(compile):
    @compile
    def f(x):
        return torch.normal(0.0, x), torch.normal(x, x), torch.poisson(x)

    torch.manual_seed(0)
    return f(torch.rand(2, 4, 3, 3).to(memory_format=torch.channels_last))


@program(grad=True)
def test_data_has_a_version_of_its_own(compile):
    @compile
    def f(x):
        x.data.add_(1)

    x = torch.arange(4.0).requires_grad_()
    y = (x * x).sum()
    f(x)
    y.backward()
    return x, x.grad, x._version


@program()
def test_numbers_that_vary_and_overflow(compile):
    @compile
    def f(x, n):
        return x + n, x.clamp(n)

    return [outcome(f, torch.ones(2), n) for n in (1.5, 2.5, 1e39, 3.5, float("inf"), -1e39)]


@program(grad=True)
def test_requires_grad_of_a_fresh_tensor(compile):
    @compile
    def f(x):
        y = torch.zeros_like(x).requires_grad_()
        return (y + x).detach() if torch.is_grad_enabled() else y + x

    with torch.no_grad():
        first = f(torch.ones(2))
    return first, f(torch.ones(2))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


USES = {
    "an operator": lambda v: v * 2,
    "a function of autograd": lambda v: Doubled.apply(v),
    "a hook": lambda v: v.register_hook(lambda g: g * 2) and v,
    "its node": lambda v: v.grad_fn is None,
    "a checkpoint": lambda v: torch.utils.checkpoint.checkpoint(lambda a: a * 2, v, use_reentrant=False),
    "kept gradients": lambda v: v.retain_grad(),
    "a gradient": lambda v: torch.autograd.grad(v, v),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@program(grad=True)
def test_a_view_whose_base_was_written_to(compile, use):
    """What PyTorch refuses inside of a function that the compiler performs itself is eager's error, not an internal one."""

    def region(x):
        y = x * 2
        part = y.unbind(0)[0]
        y.relu_()
        return use(part)

    return outcome(compile(region), torch.ones(3, 3, requires_grad=True))[:3]
