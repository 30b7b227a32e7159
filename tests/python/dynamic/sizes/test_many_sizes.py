"""A compiled function whose sizes are others at every call: its plan gets other numbers, in place."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from size_checks import compiles, in_threads, same

TABLE = torch.randn(64, 6)


def windows_on_a_constant(x):
    return x + TABLE[: x.size(0)], TABLE[x.size(0) // 2 : x.size(0)] * 2


def products(x):
    y = F.linear(x, torch.ones(6, 6)) @ x.t()
    return y.softmax(-1), torch.bmm(x[None], x.t()[None])


def aliases(x):
    y = x * 2
    return y, y[1:], y.t(), x[: x.size(0) // 2]


def long_rows(x):
    return torch.softmax(x.t().contiguous(), -1).sum(0), F.layer_norm(x.t(), (x.size(0),))


def extern_calls(x):
    return x.cumsum(0), x.sort(0).values, torch.cat([x, x[:1]], 0).cumsum(1), x.repeat_interleave(2, 0)


def sizes_among_arguments(x):
    return torch.narrow(x.cumsum(0), 0, 0, x.size(0)), x.new_full((x.size(0), 2), x.size(0)).cumsum(0)


def in_place(x):
    x.mul_(2)
    return x.abs().sum()  # terms that cancel would leave nothing but rounding


PROGRAMS = [windows_on_a_constant, products, aliases, long_rows, extern_calls, sizes_among_arguments, in_place]
ORDER = [5, 9, 5, 3, 17, 9, 40, 2, 64, 5, 33, 17, 1, 7, 1, 23, *range(20, 50), 0, 6, 0, *range(30, 2, -1)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_any_order_of_sizes(program):
    torch.manual_seed(0)
    compiled = oxyfuel.compile(program, dynamic=True)
    kept = []

    def run():
        for n in ORDER:
            x = torch.randn(n, 6)
            mine = x.clone()
            kept.append((compiled(mine), program(x)))
            same(mine, x)

    assert compiles(run) <= 4  # 0, 1 and 2 rows may be programs of their own
    for actual, expected in kept:  # results of one call outlive those of others
        same(actual, expected)


def test_gradients_in_any_order_of_sizes():
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    compiled = oxyfuel.compile(model, dynamic=True)

    def gradients(function, x):
        model.zero_grad()
        function(x).square().mean().backward()
        return [parameter.grad for parameter in model.parameters()]

    def run():
        for n in ORDER:
            if n > 1:
                x = torch.randn(n, 6)
                for actual, expected in zip(gradients(compiled, x), gradients(model, x)):
                    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)

    assert compiles(run) <= 2
    losses = []  # whose forward passes all run before their backward passes
    for n in (4, 11, 4, 30, 12):
        losses.append((compiled(torch.ones(n, 6)).sum(), n))
    for loss, n in reversed(losses):
        model.zero_grad()
        loss.backward()
        actual = [parameter.grad for parameter in model.parameters()]
        model.zero_grad()
        model(torch.ones(n, 6)).sum().backward()
        for a, parameter in zip(actual, model.parameters()):
            torch.testing.assert_close(a, parameter.grad, rtol=1e-4, atol=1e-5)


def test_threads_with_sizes_of_their_own():
    compiled = oxyfuel.compile(products, dynamic=True)
    compiled(torch.randn(5, 6))

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for k in range(150):
            x = torch.randn(2 + (seed * 31 + k * (1 + seed % 3)) % 50, 6, generator=generator)
            same(compiled(x), products(x))

    in_threads(6, work)


def test_a_view_of_a_leaf_beside_a_write():
    """The view is made anew by its operator, whose sizes are symbols, after the write has been done."""

    def program(x, counts):
        counts.narrow(-2, 0, 1).add_(1)
        return x.chunk(2, 1)[-1], x.split(x.size(0), 1)[0]

    compiled = oxyfuel.compile(program, dynamic=True)
    for rows, columns in ((4, 6), (3, 7), (8, 3), (1, 2)):
        x = torch.randn(rows, columns)
        results = []
        for function in (program, compiled):
            leaf, counts = x.clone().requires_grad_(), torch.zeros(2, 1, dtype=torch.int64)
            last, first = function(leaf, counts)
            (last.sum() + (first * 3).sum()).backward()
            results.append((last.detach(), first.detach(), leaf.grad, counts))
        same(*results)


def test_padding_refuses_what_eager_refuses():
    for mode in ("reflect", "replicate"):

        def program(x, mode=mode):
            return F.pad(x, (1, 1), mode=mode)

        compiled = oxyfuel.compile(program, dynamic=True)
        for shape in ((3, 5), (4, 6), (3, 0), (0, 4), (2, 3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0)):
            x = torch.randn(shape)
            results = []
            for function in (program, compiled):
                try:
                    results.append(function(x))
                except RuntimeError as error:
                    results.append(str(error))
            same(*results)


def test_an_empty_diagonal_begins_where_the_matrix_does():
    def program(x):
        return x.diagonal(-1), x.diagonal(1), x.diagonal()

    compiled = oxyfuel.compile(program, dynamic=True)
    for shape in ((3, 3), (1, 1), (0, 3), (3, 0), (2, 5)):
        x = torch.randn(shape)
        for a, b in zip(program(x), compiled(x)):
            same(a, b)
            assert a.storage_offset() == b.storage_offset()
