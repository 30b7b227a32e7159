"""Broadcast operands leave the order of some dimensions to others: in eager these have no say where they have one index."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from size_checks import compiles, same

import oxyfuel

PROGRAMS = {
    "inputs": lambda a, b: a[:, None, :] * b[None],
    "made": lambda a, b: a.sigmoid()[:, None, :] * b[None],
    "both made": lambda a, b: (a + 1)[:, None, :] + b.sigmoid()[None],
    "compared": lambda a, b: a.exp().unsqueeze(1) > b.unsqueeze(0),
    "chosen": lambda a, b: torch.where(a.exp().unsqueeze(1) > 1, b.unsqueeze(0), 1.0),
    "summed": lambda a, b: torch.einsum("...i,ji->...j", F.hardsigmoid(a), b) / 8,
    "through a product": lambda a, b: (a.mm(b.t()).t() * 2)[:, None, :] + a.sum(1),
}
LAYOUTS = [lambda n, m: torch.randn(n, m), lambda n, m: torch.randn(m, n).t(), lambda n, m: torch.randn(1, m).expand(n, m)]
SIZES = [
    [(13, 2, 5), (13, 2, 1), (1, 2, 5), (3, 1, 5)],
    [(13, 2, 1), (13, 2, 5), (13, 4, 1)],
    [(2, 3, 4), (7, 8, 1), (6, 5, 1), (1, 1, 1), (1, 4, 1)],
]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_are_those_of_eager_where_a_size_is_one(name, dynamic):
    program = PROGRAMS[name]
    for left in LAYOUTS:
        for right in LAYOUTS:
            for sizes in SIZES:
                oxyfuel.reset()
                compiled = oxyfuel.compile(program, dynamic=dynamic)
                for n, m, shared in sizes:
                    a, b = left(n, shared), right(m, shared)
                    same(compiled(a, b), program(a, b))


def test_gradients_of_a_program_that_was_captured_again():
    program = PROGRAMS["made"]
    compiled = oxyfuel.compile(program)
    for n, m, shared in ((13, 2, 5), (13, 2, 1), (6, 2, 1), (6, 2, 7)):
        a, b = torch.randn(shared, n, requires_grad=True), torch.randn(m, shared, requires_grad=True)
        results = [f(a.t(), b) for f in (compiled, program)]
        same(*results)
        same(*[torch.autograd.grad(result.square().sum(), (a, b)) for result in results])


def test_orders_that_ones_leave_alone_are_compiled_once():
    compiled = oxyfuel.compile(lambda a, b, mask: a[:, None, :] * b[None] + mask, dynamic=True)

    def calls(*sizes):
        for n, m, shared in sizes:
            compiled(torch.randn(n, shared), torch.randn(m, shared), torch.randn(m, 1))

    assert compiles(lambda: calls((4, 5, 6), (1, 5, 6), (4, 1, 6), (4, 5, 1), (1, 1, 1))) == 1


@pytest.mark.parametrize("made", [lambda x: x[:, None], lambda x: x.view(-1, 1, x.size(1)), lambda x: x[None]])
def test_a_dimension_of_one_beside_a_batch_of_one_asks_nothing(made):
    """As in masks of attention: one graph for a batch of 1 and of 8, whichever comes first."""
    compiled = oxyfuel.compile(lambda x, mask: made(x) * made(mask), dynamic=True)

    def calls():
        for batch in (1, 3, 8):
            same(compiled(torch.ones(batch, 4), torch.ones(batch, 4)), made(torch.ones(batch, 4)))

    assert compiles(calls) == 1


def test_a_marked_size_is_no_violation():
    compiled = oxyfuel.compile(PROGRAMS["made"])
    for size in (5, 1, 7):
        a, b = torch.randn(size, 13).t(), torch.randn(2, size)
        oxyfuel.mark_dynamic(a, 1, min=1, max=100)
        oxyfuel.mark_dynamic(b, 1, min=1, max=100)
        same(compiled(a, b), PROGRAMS["made"](a, b))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))), ids=str)
def test_an_intermediate_that_is_returned_beside_what_decided_its_ones(permutation, dynamic):
    """A guard keeps a size at 1 at most. Results have eager's strides under it, too."""

    def program(one, x):
        converted = x.to(torch.float16)
        return converted, torch.fmax(one.detach(), converted), x.sin()

    for first in ([5, 9, 3], [4, 4, 4]):
        for ones in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
            oxyfuel.reset()
            compiled = oxyfuel.compile(program, dynamic=dynamic)
            for large in (first, [2, 2, 2], [3, 7, 5]):
                sizes = large if large is first else [1 if d in ones else size for d, size in enumerate(large)]
                one, x = torch.ones(1, 1), torch.randn(sizes).permute(permutation)
                same(compiled(one, x), program(one, x))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))), ids=str)
def test_a_size_of_one_beside_a_result_of_one_index_is_not_repeated(permutation, dynamic):
    """The stride of such a size orders the others."""
    programs = [lambda a, b: torch.fmax(a, b), lambda a, b: torch.where(b > 0, b, a.sigmoid()), lambda a, b: torch.maximum(torch.cat([b, b], 1), a + 1)]
    for program in programs:
        for sizes in ([(7, 3, 1), (5, 3, 1), (7, 3, 4)], [(7, 3, 4), (7, 3, 1), (1, 3, 4), (7, 1, 4), (7, 1, 1)]):
            oxyfuel.reset()
            compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
            for n, m, k in sizes:
                a = torch.randn([(n, 1, 1)[d] for d in permutation]).permute([permutation.index(d) for d in range(3)])
                b = torch.randn(1, m, k)
                same(compiled(a, b), program(a, b))


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_stride_of_one_that_a_broadcast_makes_orders_others(dynamic):
    """A loss decides that a size is 1 before a tensor of one element, whose size is not decided yet, takes its place."""

    def program(x, one, weight):
        y = x.double()
        return F.smooth_l1_loss(y, y * 0.5, reduction="none"), torch.einsum("...i,ji->...j", torch.add(y, one, alpha=2), weight) / 8

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for n, m, k in ((16, 16, 16), (5, 3, 7), (2, 9, 4)):
        arguments = torch.randn(n, 1, m).permute(0, 2, 1), torch.randn(1, dtype=torch.float64), torch.randn(k, 1, dtype=torch.float64)
        same(compiled(*arguments), program(*arguments))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("dim", [1, 2, -3, -2])
def test_stacked_images_of_which_there_is_one(dim, dynamic):
    """They are no longer in the format of their channels."""

    def program(x):
        both = torch.stack([x, x * 2], dim)
        return both, torch.cat([both.abs(), both], dim), torch.cat([both, both], 1) / 2

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for n, m, height in ((4, 3, 1), (31, 12, 1), (1, 3, 1), (3, 6, 1), (1, 1, 1), (2, 3, 4), (1, 3, 4)):
        x = torch.randn(n, m, height, n).to(memory_format=torch.channels_last)
        same(compiled(x), program(x))


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("permutation", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2), (2, 0, 3, 1)], ids=str)
def test_two_dimensions_that_only_sizes_of_one_order(permutation, dynamic):
    """Each operand is broadcast along one of them. Strides of a size of 1 come from the operand's own layout."""

    def program(x):
        y = x[..., None]
        return (y * y).T - y, (y + 1).T * y.abs()

    back = [permutation.index(d) for d in range(4)]
    for first in ((9, 7, 4), (1, 7, 1), (9, 1, 4)):
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
        for n, m, k in (first, (1, 7, 1), (17, 5, 2), (1, 5, 3), (4, 3, 1), (1, 1, 6)):
            sizes = n, m, k, 1
            x = torch.randn([sizes[d] for d in permutation]).permute(back)
            same(compiled(x), program(x))
            same(compiled(x.to(memory_format=torch.channels_last)), program(x.to(memory_format=torch.channels_last)))
