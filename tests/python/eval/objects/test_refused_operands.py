"""Operands that eager refuses, or takes in a way of its own: the same values and errors, used or not, in any order."""

import pytest
import torch
import torch.nn.functional as F

from eager_comparison import outcome, program

ONES, LONG = torch.ones(3, 4), torch.tensor([0, 2, 1, 0])
IMAGE = torch.arange(32.0).reshape(1, 2, 4, 4)
LOGITS = torch.arange(12.0).reshape(4, 3).sin()

# An operator, and operands for one function after another: fitting ones among others.
CALLS = {
    "select_scatter": (
        lambda x, y, dim, index: torch.select_scatter(x, y, dim, index),
        [
            (ONES, torch.arange(4.0), 0, 1),
            (ONES, torch.ones(4), -3, 1),
            (torch.tensor(1.0), torch.tensor(2.0), 0, 0),
            (ONES, torch.ones(4), 2, 1),
            (ONES, torch.arange(3.0), 0, 1),
            (ONES, torch.ones(4), 0, 3),
            (ONES, torch.ones(4), 0, -4),
            (ONES, torch.ones(1), 0, 0),
            (ONES, torch.tensor(1.0), 0, 0),
            (ONES, torch.arange(3.0), -1, -1),
        ],
    ),
    "as_strided_scatter": (
        lambda x, y, size, stride, offset: torch.as_strided_scatter(x, y, size, stride, offset),
        [
            (ONES, torch.arange(4.0).reshape(2, 2), (2, 2), (4, 1), 1),
            (ONES, torch.tensor([10.0, 20.0]), (2, 2), (4, 1), 1),
            (ONES, torch.ones(3, 3), (2, 2), (4, 1), 0),
            (ONES, torch.ones(2, 2), (2, 2), (4,), 0),
        ],
    ),
    "nll_loss": (
        lambda x, y, weight: F.nll_loss(x, y, weight, reduction="none"),
        [(LOGITS, LONG, torch.ones(shape)) for shape in (3, 2, 0, 1, 4, (1, 3))],
    ),
    "cross_entropy": (lambda x, y, weight: F.cross_entropy(x, y, weight), [(LOGITS, LONG, torch.ones(n)) for n in (3, 0, 2, 4)]),
    "nll_loss of images": (
        lambda x, y, weight: F.nll_loss(x, y, weight),
        [(IMAGE, torch.zeros(1, 4, 4, dtype=torch.long), torch.ones(n)) for n in (2, 1, 3)],
    ),
    "cat of nothing": (lambda x, y, dim: torch.cat([x, y], dim), [(torch.empty(0), torch.empty(0), dim) for dim in (0, -1, -3, 5)]),
    "roll by large numbers": (lambda x, n: torch.roll(x, n, 0), [(torch.arange(5), n) for n in (1, 2**61, -(2**62), 2**63 - 1)]),
    "slices to the end": (lambda x, end: (x[1:end], x[-end:]), [(torch.arange(5), end) for end in (2, 2**62, 2**63 - 1)]),
    "rounded division": (
        lambda x, mode: torch.div(x, 3, rounding_mode=mode),
        [(torch.tensor([-4.0, 4.0]), mode) for mode in ("floor", "trunc", None, "Floor", "")],
    ),
    "weights of logits": (
        lambda x, weight: (F.binary_cross_entropy_with_logits(x, x, pos_weight=weight), F.binary_cross_entropy_with_logits(x, x, weight)),
        [(ONES, torch.arange(4.0)), (ONES, torch.arange(24.0).reshape(2, 3, 4)), (torch.ones(1, 4), ONES)],
    ),
    "smooth_l1_loss": (lambda x, beta: F.smooth_l1_loss(x, x * 0, beta=beta), [(ONES, beta) for beta in (1.0, 0.0, -1.0)]),
    "limits of unsigned numbers": (
        lambda x, low: F.hardtanh(x, low, 6),
        [(torch.tensor([1, 9], dtype=torch.uint8), 0), (torch.tensor([1, 9], dtype=torch.uint8), -1)],
    ),
    "types of sums": (lambda x, dtype: x.nansum(dtype=dtype), [(ONES, dtype) for dtype in (torch.float64, torch.complex64, torch.float32)]),
    "parameters of group_norm": (
        lambda x, weight: F.group_norm(x, 2, weight),
        [(torch.arange(24.0).reshape(2, 4, 3), torch.ones(4, dtype=t)) for t in (torch.float32, torch.float64)],
    ),
    "norms of single numbers": (
        lambda x, order: (torch.linalg.vector_norm(x, order, dim=1), F.normalize(x, order, dim=1, eps=1e-30)),
        [(torch.tensor([[1e-25], [5e37]]), order) for order in (2, 1, 3, 0, float("inf"))],
    ),
    "images without elements": (
        lambda x, size: F.interpolate(x, size=size),
        [(IMAGE, (8, 8)), (torch.ones(2, 0, 4, 4), (8, 8)), (IMAGE, (0, 0))],
    ),
    "half numbers": (
        lambda x, number: (x == number, x >= number, x < number, x != number),
        [(torch.tensor([0.1, 1.1, 2.0]).to(t), n) for t in (torch.half, torch.bfloat16) for n in (0.1, 1.1, 2.0, 1e-7, 70000.0, 1)],
    ),
    "results in place of operands": (
        lambda x, operator, *operands: operator(x, *operands, out=x),
        [
            (torch.arange(3.0), torch.gather, 0, torch.tensor([2, 1, 0])),
            (torch.arange(3.0), torch.take, torch.tensor([2, 1, 0])),
            (torch.arange(3.0), torch.index_select, 0, torch.tensor([2, 1, 0])),
            (torch.arange(3.0), torch.add, 1),
            (torch.arange(3.0), torch.cumsum, 0),
            (torch.ones(2, 2), torch.mm, torch.ones(2, 2)),
        ],
    ),
    "negative sizes": (
        lambda x, *sizes: (x.view(sizes), x.reshape(sizes)),
        [(torch.ones(n), *sizes) for n, *sizes in ((0, 0, -5), (0, 0, 5), (0, -5, 0), (6, -2, -3), (6, 2, -3, -1), (0, -1, 0), (6, -1, 3))],
    ),
    "kthvalue": (lambda x, k: torch.kthvalue(x, k), [(torch.arange(3.0), k) for k in (1, 9, 3)]),
    "convolution": (lambda x, groups: F.conv2d(x, torch.ones(3, 1, 2, 2), groups=groups), [(IMAGE, 2), (IMAGE, 1)]),
    "unfold": (lambda x, size: F.unfold(x, size), [(IMAGE, 2), (IMAGE, 9)]),
    "topk": (lambda x, k: torch.topk(x, k), [(torch.arange(3.0), 2), (torch.arange(3.0), 4)]),
    "histc": (lambda x, bins: torch.histc(x, bins), [(torch.arange(3.0), 2), (torch.arange(3.0), 0)]),
    "rot90": (lambda x, dims: torch.rot90(x, 1, dims), [(ONES, (0, 1)), (ONES, (1, 1)), (ONES, (0, 5))]),
    "tril_indices": (lambda x, rows: torch.tril_indices(rows, 3), [(ONES, 2), (ONES, -1)]),
}


@pytest.mark.parametrize("kind", CALLS)
@program(backends=("native",))
def test_values_and_errors(compile, kind):
    operator, calls = CALLS[kind]
    return [outcome(compile(operator), *operands)[:3] for operands in calls] + [outcome(function, *operands)[:3] for function in [compile(operator)] for operands in calls]


@pytest.mark.parametrize("kind", CALLS)
@program(backends=("native",))
def test_results_that_nobody_reads(compile, kind):
    operator, calls = CALLS[kind]

    def tries(x, *operands):
        try:
            operator(*operands)
        except (RuntimeError, IndexError, ValueError) as error:
            return x - 1, type(error)
        return x * 2

    def fails(x, *operands):
        x.add_(1)
        operator(*operands)
        return x * 2

    x = torch.ones(2)
    return [(outcome(compile(tries), x, *operands)[:3], outcome(compile(fails), x, *operands)[:3]) for operands in calls], x


@program()
def test_seeds_from_the_whole_range(compile):
    def f(x):
        return torch.randint(0, 2**63 - 1, (2,)) + x, torch.randint(-(2**62), 2**62, (2,)), torch.empty(2, dtype=torch.int64).random_(0, 2**62)

    torch.manual_seed(0)
    g = compile(f)
    return [g(torch.tensor([0])) for _ in range(2)], torch.get_rng_state()
