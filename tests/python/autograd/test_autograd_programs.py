"""Random programs that use autograd inside and outside of what is compiled; tests/fuzz/autograd_programs.py runs more."""

import pytest

import autograd_programs
import oxyfuel
import seeds

CHUNK = 100
FOUND = [
    910001140,  # a part of the backward pass read an argument that eager keeps for another one
    910001475,  # one of several views, whose memory was written to, is a result
    920024833,  # a result whose history is spent lies behind another one
    920104032,  # a hook of a result that is written to, and that eager gives as a view
    920119032,  # a backward pass from a view that was made without grad
    920205296,  # two arguments that a part of the backward pass read, and eager keeps for another one
    920212695,  # a view comes before the result of which it is one
]


@pytest.mark.parametrize("first", range(0, 600, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_same_as_eager(first):
    different = seeds.differing(autograd_programs.difference, first, CHUNK)
    assert not different, f"see one with: tests/fuzz/autograd_programs.py --seeds N:N+1 --show; {different}"


@pytest.mark.parametrize("seed", FOUND)
@pytest.mark.filterwarnings("ignore")
def test_found(seed):
    assert not autograd_programs.difference(seed)


def test_programs_are_those_of_their_seeds():
    assert autograd_programs.program(7) == autograd_programs.program(7)
    assert autograd_programs.program(7) != autograd_programs.program(8)


def test_a_difference_is_found(monkeypatch):
    """A compiler that loses a hook is caught."""
    lines = "def f(x, y):\n    x = x * 2\n    x.register_hook({hook})\n    return x, y, y, []\n"
    monkeypatch.setattr(autograd_programs, "program", lambda seed: autograd_programs.PRELUDE + lines.format(hook="double") + "def g(x, y): return x * 2, y, y, []\n")
    monkeypatch.setattr(oxyfuel, "compile", lambda f: f.__globals__["g"])
    assert "expected" in autograd_programs.difference(0)
