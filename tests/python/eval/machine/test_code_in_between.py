"""The program's code that runs while something is captured: finalizers, callbacks of the collector, signal handlers."""

import ctypes
import gc
import signal
import subprocess
import sys
import threading
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


def test_exceptions_from_other_threads():
    """They come during a capture as well, which a loop that polls could prolong for ever."""
    compiled, ends = oxyfuel.compile(endless), []

    def run():
        try:
            compiled(torch.ones(2), lambda: True)
        except KeyboardInterrupt:
            ends.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
    thread.join(timeout=30)
    assert ends


def endless(x, goes_on):
    while goes_on():
        x = x + 1
    return x


def test_loops_that_poll():
    """What is too long to be captured is left to the interpreter, also at the next call."""
    flag = {"goes on": True}
    compiled = oxyfuel.compile(lambda x: endless(x, lambda: flag["goes on"]))
    taken = []
    for _ in range(3):
        flag["goes on"] = True
        threading.Timer(0.2, flag.update, [{"goes on": False}]).start()
        start = time.monotonic()
        compiled(torch.ones(2))
        taken.append(time.monotonic() - start)
    assert max(taken) < 20


def test_first_call_at_exit():
    script = """
import oxyfuel, torch
class Last:
    def __init__(self, *functions): self.functions, self.x = functions, torch.ones(2)
    def __del__(self): print([f(self.x).tolist() for f in self.functions])
last = Last(oxyfuel.compile(lambda x: x + 1), oxyfuel.compile(torch.nn.ReLU()))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "[[2.0, 2.0], [1.0, 1.0]]\n"), done.stderr


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
