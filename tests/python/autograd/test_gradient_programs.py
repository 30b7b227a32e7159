"""Random functions of several results, and gradients of gradients; tests/fuzz/gradient_programs.py runs more."""

import pytest

import gradient_programs
import oxyfuel
import seeds

CHUNK = 100


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_same_as_eager(first):
    different = seeds.differing(gradient_programs.difference, first, CHUNK)
    assert not different, f"see one with: tests/fuzz/gradient_programs.py --seeds N:N+1 --show; {different}"


def test_programs_are_those_of_their_seeds():
    assert gradient_programs.program(7) == gradient_programs.program(7)
    assert gradient_programs.program(7) != gradient_programs.program(8)


def test_a_difference_is_found(monkeypatch):
    """A compiler that loses what a gradient depends on is caught."""
    monkeypatch.setattr(gradient_programs, "program", lambda seed: "def f(x, w, order): return x * x * w,\n")
    monkeypatch.setattr(oxyfuel, "compile", lambda f: lambda x, w, order: (x * x.detach() * w * 2 - (x * x * w).detach(),))
    assert "expected" in gradient_programs.difference(0)
