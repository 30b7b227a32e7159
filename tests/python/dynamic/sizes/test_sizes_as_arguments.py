"""torch.Size objects and slices that a program is given, or that live across a break: their numbers vary as ints do."""

import pytest
import torch

import oxyfuel

X = torch.arange(60.0).view(20, 3)
NUMBERS = (4, 5, 6, 7, 9, 12)

PROGRAMS = {
    "a size": (lambda x, s: (x.new_zeros(s) + 1, s, s[0], len(s), s.numel(), s + (1,), tuple(s), s == torch.Size([5, 2]), type(s)), lambda n: torch.Size([n, 2])),
    "a size in a dict": (lambda x, d: (x.new_ones(d["shape"]), d["shape"]), lambda n: {"shape": torch.Size([n, 2])}),
    "a slice": (lambda x, s: (x[s] + 1, s.start, s.stop, s.step, s), lambda n: slice(1, n)),
    "slices": (lambda x, s: (x[s] + 1,), lambda n: (slice(1, n), slice(None, 2))),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_arguments(name, dynamic):
    program, make = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for n in NUMBERS:
        assert repr(compiled(X, make(n))) == repr(program(X, make(n)))
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 3 and not metrics["calls_eager"] and not metrics["breaks"], metrics["recompile_reasons"]


def test_other_lengths_and_kinds():
    program = lambda x, s: x.new_zeros(s).sum() + len(s)  # noqa: E731
    compiled = oxyfuel.compile(program)
    for size in (torch.Size([2, 3]), torch.Size([4, 5]), torch.Size([4]), (4, 2), [5, 2], torch.Size([]), torch.Size([7, 8])):
        assert compiled(X, size) == program(X, size)


def test_how_a_size_is_shown():
    """Also within containers, and of a tensor whose sizes are symbols."""
    program = lambda x, s: (x + 1, repr(s), f"{[s]!r} {(s, 1)} {x.shape} {[x.shape]}", str({"s": s}), isinstance(s, torch.Size))  # noqa: E731
    compiled = oxyfuel.compile(program)
    for n in NUMBERS:
        assert compiled(X[:n], torch.Size([n, 2]))[1:] == program(X[:n], torch.Size([n, 2]))[1:]


def test_what_a_program_gives_back_is_what_it_got():
    compiled, size = oxyfuel.compile(lambda x, s: (x + 1, s)), torch.Size([3, 2])
    for given in (size, torch.Size([4, 2]), torch.Size([5, 2]), size):
        assert compiled(X, given)[1] is given


def test_a_size_across_a_break():
    def program(x):
        size = x.shape
        y = x.flatten() * 2
        oxyfuel.graph_break()
        return y.view(size) + 1

    compiled = oxyfuel.compile(program)
    for n in (4, 5, 6, 7, 9, 12, 20, 11, 13, 14):
        assert torch.equal(compiled(X[:n]), program(X[:n]))
    assert oxyfuel.metrics()["graphs"] <= 4 and not oxyfuel.metrics()["calls_eager"]


ALLOWED = (1, 3)
MEMBERSHIPS = {
    "a tuple": lambda x: x * 2 if x.size(0) in (1, 3) else x * 3,
    "a list": lambda x: x * 2 if x.size(0) in [1, 3] else x * 3,
    "a set": lambda x: x * 2 if x.size(0) in {1, 3} else x * 3,
    "not in": lambda x: x * 2 if x.size(0) not in (1, 3) else x * 3,
    "a tuple of the module": lambda x: x * 2 if x.size(0) in ALLOWED else x * 3,
    "sizes": lambda x: x * 2 if x.size(0) in [x.size(1), 5] else x * 3,
}


@pytest.mark.parametrize("name", MEMBERSHIPS)
def test_a_size_among_numbers(name):
    """Each number is compared with it, and no more is guarded."""
    program = MEMBERSHIPS[name]
    compiled = oxyfuel.compile(program, dynamic=True)
    for n in (8, 9, 7, 6, 10, 2, 11, 12, 13):
        assert torch.equal(compiled(X[:n]), program(X[:n]))
    assert oxyfuel.metrics()["graphs"] <= 2 and not oxyfuel.metrics()["calls_eager"]
    for n in (1, 3, 5, 4, 0):
        assert torch.equal(compiled(X[:n]), program(X[:n]))
