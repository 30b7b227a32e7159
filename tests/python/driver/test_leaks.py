"""What stays when compiled functions are gone."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch

import oxyfuel

MEBIBYTE = 1 << 20


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def compile_and_forget(numbers):
    for number in numbers:
        compiled = oxyfuel.compile(eval(f"lambda x: (x * {number}.5 + 1).sin()"))  # kernels that nobody has
        compiled(torch.ones(100))
    del compiled
    oxyfuel.reset()
    gc.collect()


def test_compilations_leave_nothing():
    compile_and_forget(range(40))
    before = resident_bytes()
    compile_and_forget(range(40, 140))
    grown = resident_bytes() - before
    assert grown < 8 * MEBIBYTE, f"{grown / MEBIBYTE:.1f} MiB for 100 compilations"


class Trainer:
    def __init__(self):
        self.model = torch.nn.Linear(3, 3)
        self.step = oxyfuel.compile(lambda x: self.model(x))


def test_cycles_through_compiled_functions_are_collected():
    trainer = Trainer()
    for rows in (1, 2):
        trainer.step(torch.ones(rows, 3))
    ended = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert ended() is None


def test_a_function_that_names_its_own_compiled_function():
    namespace = {"torch": torch, "oxyfuel": oxyfuel}
    exec("class Held: pass\nheld = Held()\ndef f(x): return x + (2 if g else 3)\ng = oxyfuel.compile(f)\ng(torch.ones(2))", namespace)
    ended = weakref.ref(namespace["held"])
    namespace = None
    gc.collect()
    assert ended() is None


BODIES = {
    "whole": "return x + w",
    "a break": "print(end=''); return x + w",
    "a break behind calls": "y = g(x); print(end=''); return g(y) + w",
    "a break in a callee": "return loud(x) + w",
    "a break in a loop": "return [g(x) + len(print(end='') or 'ab') for _ in range(3)], w",
    "an error": "raise ValueError",
    "an error of an element": "raise ValueError(x.sum().item())",
    "an element": "return x.sum().item() + w",
    "a generator": "yield x + w; print(end=''); yield x * w",
    "a closure": "h = lambda y: y + w; print(end=''); return h",
}


@pytest.mark.parametrize("body", BODIES)
def test_functions_end_with_what_they_name(body):
    ended = []
    source = "def g(x): return x * 2\ndef loud(x): print(end=''); return x\ndef f(x): " + BODIES[body]
    for _ in range(5):
        namespace = {"torch": torch, "w": torch.ones(10)}
        exec(compile(source, "made.py", "exec"), namespace)
        compiled = oxyfuel.compile(namespace["f"])
        for _ in range(2):
            try:
                result = compiled(torch.ones(10))
                list(result) if body == "a generator" else None
            except ValueError:
                pass
        ended += [weakref.ref(namespace[name]) for name in ("f", "g", "w")] + [weakref.ref(namespace["f"].__code__)]
        namespace = compiled = result = None
    gc.collect()
    assert not [end() for end in ended if end()]


class Named:
    pass


@pytest.mark.parametrize("breaks", [False, True])
def test_weak_references_with_callbacks(breaks):
    called = []

    @oxyfuel.compile
    def f(named, x):
        large = torch.zeros(1000) + x
        reference = weakref.ref(named, lambda _: called.append(large))
        if breaks:
            print(end="")
        return x + 1, reference() is named

    oxyfuel.reset()
    named = Named()
    for _ in range(20):
        assert f(named, torch.ones(1))[1]
    assert weakref.getweakrefcount(named) == 0
    assert not oxyfuel.metrics()["recompiles"]
    del named
    assert not called


AT_EXIT = """
import torch, oxyfuel
class Speaks:
    def __del__(self): print("ended")
held = Speaks()
def f(x):
    {}
    return x * 2
compiled = oxyfuel.compile(f)
compiled(torch.ones(2))
"""


@pytest.mark.parametrize("statement", ["pass", "print(end='')", "x.sum().item()"])
def test_objects_end_with_the_process(statement):
    run = subprocess.run([sys.executable, "-c", AT_EXIT.format(statement)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert run.stdout == "ended\n", run.stderr
