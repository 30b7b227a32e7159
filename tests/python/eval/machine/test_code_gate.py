"""While a region is captured, C code runs no special method of the program's; finalizers and callbacks run as ever."""

import gc
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch

import oxyfuel

LOG = []
X = torch.ones(2)


class Two:
    """Taken for a number once it has been asked for one."""

    def __index__(self):
        LOG.append("index")
        return 2

    @property
    def shape(self):
        LOG.append("shape")
        return (2,)


class Items(list):
    def __iter__(self):
        LOG.append("iter")
        return super().__iter__()

    def __getattr__(self, name):
        LOG.append(name)
        raise AttributeError(name)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(Two(), 1) + 1,
        lambda x: torch.full((2,), Items([1])),
        lambda x: torch.stack(Items([x, x])) * 2,
        lambda x: x.sum(dim=Items([0])),
        lambda x: torch.tensor(Items([1.0, 2.0])) + x,
        lambda x: getattr(Two(), "shape")[0] * x,
    ],
)
def test_each_is_asked_as_often_as_in_eager(function):
    def observed(called):
        LOG.clear()
        try:
            outcome = called(X).tolist()
        except TypeError as error:
            outcome = str(error)
        return outcome, list(LOG)

    expected = observed(function)
    compiled = oxyfuel.compile(function)
    for _ in range(3):
        assert observed(compiled) == expected


def test_finalizers_run_during_a_capture():
    class Ring:
        def __init__(self, callbacks):
            self.ring = self
            self.reference = weakref.ref(self, callbacks.append)

        def __del__(self):
            LOG.append(Helper("finalized").text)

    class Helper:
        def __init__(self, text):
            self.text = text

    def function(x):
        parts = [[x + i] for i in range(200)]
        return sum(part[0] for part in parts)

    LOG.clear()
    callbacks, before = [], gc.get_threshold()
    expected = function(X)
    watched = [Ring(callbacks) for _ in range(5)]
    references = [weakref.ref(ring, callbacks.append) for ring in watched]
    gc.set_threshold(1, 1, 1)
    try:
        del watched
        assert oxyfuel.compile(function)(X).equal(expected)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert LOG == ["finalized"] * 5 and sorted(map(id, callbacks)) == sorted(map(id, references))


def test_what_is_imported_during_a_capture_is_whole(tmp_path):
    # The first use of a meta kernel imports sympy, whose classes have special methods.
    script = tmp_path / "imports.py"
    script.write_text(
        textwrap.dedent(
            """
            import torch, oxyfuel
            assert not oxyfuel.explain(lambda x: torch.cross(x, x, dim=0))(torch.ones(3, 3)).breaks
            import sympy
            assert sympy.sympify("x + x") == 2 * sympy.Symbol("x")
            """
        )
    )
    subprocess.run([sys.executable, script], check=True, timeout=200)
