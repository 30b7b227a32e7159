"""The program's code that runs while something is captured: finalizers, callbacks of the collector, signal handlers."""

import gc
import signal
import subprocess
import sys
import time

import pytest
import torch

import oxyfuel


@pytest.fixture(autouse=True)
def usual_collector():
    oxyfuel.reset()
    gc.collect()
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = [callback for callback in gc.callbacks if not getattr(callback, "of_this_test", False)]
    gc.unfreeze()
    oxyfuel.reset()


def long_function(x):
    made = []
    for i in range(200):
        made.append([i])
        x = x + made[-1][0]
    return x


def draws_nothing(compiled):
    before = torch.get_rng_state()
    compiled(torch.ones(2))
    return torch.equal(before, torch.get_rng_state())


def test_finalizers_of_cycles():
    kept = []

    class Session:
        def __init__(self):
            self.me = self

        def __del__(self):
            kept.append(torch.rand(2) + 1)

    compiled = oxyfuel.compile(long_function)
    gc.collect()
    gc.freeze()
    Session()
    gc.set_threshold(100)
    found = compiled(torch.ones(2))
    gc.set_threshold(700)
    gc.collect()
    assert torch.equal(found, long_function(torch.ones(2)))
    assert len(kept) == 1 and all(1 <= value < 2 for value in kept[0].tolist())
    assert draws_nothing(compiled)


def test_callbacks_of_the_collector():
    kept = []
    inner = oxyfuel.compile(lambda x: (x * 3).sum())

    def callback(phase, info):
        kept.append((torch.ones(2) + 1, inner(torch.ones(2))))

    callback.of_this_test = True
    gc.callbacks.append(callback)
    gc.set_threshold(50)
    compiled = oxyfuel.compile(long_function)
    found = compiled(torch.ones(2))
    gc.set_threshold(700)
    assert torch.equal(found, long_function(torch.ones(2)))
    assert kept and all(a.tolist() == [2, 2] and b.item() == 6 for a, b in kept)
    assert draws_nothing(compiled)


@pytest.mark.parametrize("compiles", [False, True])
def test_signal_handlers(compiles):
    kept = []

    def handler(number, frame):
        inner = oxyfuel.compile(lambda x: (x * 3).sum()) if compiles else lambda x: (x * 3).sum()
        kept.append((torch.rand(2), inner(torch.ones(2))))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(10):
            compiled = oxyfuel.compile(lambda x: long_function(x))
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            found = compiled(torch.ones(2))
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert torch.equal(found, long_function(torch.ones(2)))
            assert draws_nothing(compiled)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(0.01)
        signal.signal(signal.SIGALRM, before)
    assert kept and all(0 <= value < 1 for a, _ in kept for value in a.tolist()) and all(b.item() == 6 for _, b in kept)


RESET = """
import torch, oxyfuel
def f(x, recurse, n):
    return x if n == 0 else recurse(x + 1, recurse, n - 1)
for _ in range(20):
    g = oxyfuel.compile(f)
    g(torch.ones(2), g, 3)
    del g
    oxyfuel.reset()
print(oxyfuel.compile(lambda x: x + 1)(torch.ones(2)).tolist())
"""


def test_reset_of_functions_that_only_their_guards_hold():
    run = subprocess.run([sys.executable, "-c", RESET], capture_output=True, text=True)
    assert run.stdout == "[2.0, 2.0]\n", (run.returncode, run.stderr[-2000:])
