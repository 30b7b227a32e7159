"""After the first size has changed, others are symbols that are likely to change as well, and calls of two kinds that take turns are told
apart."""

import torch
import torch.nn.functional as F

import oxyfuel
from size_checks import check, compiles


def test_lengths_and_then_batches():
    def loss(ids, labels):
        return F.cross_entropy(F.one_hot(ids, 11).float().cumsum(1).mean(1), labels)

    calls = [(torch.randint(0, 11, (n, m)), torch.randint(0, 11, (n,))) for n, m in ((8, 20), (8, 31), (8, 7), (3, 12), (1, 5))]
    check(loss, calls, 2)


def test_heights_and_then_widths():
    layer = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2))
    with torch.no_grad():
        check(layer, [(torch.randn(2, 3, h, w),) for h, w in ((16, 16), (24, 16), (24, 20), (9, 33))], 2)


def test_batches_alone_leave_other_sizes_numbers():
    compiled = oxyfuel.compile(lambda x: torch.softmax(x, -1))
    assert compiles(lambda: [compiled(torch.randn(n, 5)) for n in (2, 3, 4)]) == 2
    assert compiles(lambda: compiled(torch.randn(4, 6))) == 1
    assert compiles(lambda: [compiled(torch.randn(n, m)) for n, m in ((4, 7), (9, 2))]) == 0


def test_never_leaves_all_numbers():
    check(lambda x: x * 2, [(torch.randn(*size),) for size in ((2, 3), (2, 4))], 2, dynamic=False)
    compiled = oxyfuel.compile(lambda x: x * 3, dynamic=False)
    assert compiles(lambda: [compiled(torch.randn(2, n)) for n in (3, 4, 5, 6)]) == 4


def test_a_likely_size_that_cannot_be_a_symbol():
    """chain_matmul has no rule on symbols. Only x was seen to change."""

    def function(x, matrix):
        return x.cumsum(1).sum() + torch.chain_matmul(matrix, matrix, matrix).sum()

    matrix = torch.randn(4, 4)
    check(function, [(torch.randn(2, n), matrix) for n in (3, 5, 8, 13)], 2)


def test_calls_with_other_keywords_take_turns():
    """As generate() does with a static cache: a prompt, and steps with a mask."""

    def function(x, mask=None):
        return x * 2 if mask is None else x * mask

    compiled = oxyfuel.compile(function)

    def run():
        for n in range(3, 15):
            x = torch.randn(2, n)
            torch.testing.assert_close(compiled(x), function(x))
            torch.testing.assert_close(compiled(x, mask=x > 0), function(x, mask=x > 0))

    # One with numbers and one with symbols, of each kind.
    assert compiles(run) <= 4
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_calls_of_two_structures_take_turns():
    """As generate() does with a growing cache. What changes is told from the call of the same kind."""

    def function(x, cache):
        return torch.cat([*cache, x], 0).cumsum(0)

    compiled = oxyfuel.compile(function)

    def run():
        for n in range(3, 15):
            x, y = torch.randn(n, 4), torch.randn(2 * n, 4)
            for cache in ([], [y]):
                torch.testing.assert_close(compiled(x, cache), function(x, cache))

    assert compiles(run) <= 4
    reasons = oxyfuel.metrics()["recompile_reasons"]
    assert sum("x: size of dimension 0" in reason for reason in reasons) >= 2, reasons
