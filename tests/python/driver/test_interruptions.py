"""Signals that arrive at any time of a first call: what their handler raises reaches the caller. Code of Python's runs in many
places of a capture, and the handler runs in whatever comes first."""

import os
import random
import signal
import sys
import time

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

SEED = int(os.environ.get("OXYFUEL_SEED", "1"))
CALLS = int(os.environ.get("OXYFUEL_PROGRAMS", "80"))


class Number:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Number(self.value + other)

    def __getattr__(self, name):
        if name.startswith("three"):
            return 3
        raise AttributeError(name)


def objects(x):
    number = Number(0)
    for i in range(60):
        number = number + i
        x = x + number.value + number.three + getattr(number, "nothing", 1)
    return x


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(8))
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.norm(x)


def breaks(x):
    y = (x + 1) * 2
    print(end="")
    try:
        return {"a": [y] * 3}["b"]
    except KeyError:
        return y


def generators(x):
    def numbers(count):
        for i in range(count):
            try:
                yield x + i
            except ValueError:
                pass

    return torch.stack(list(numbers(20))).sum(0)


def classes(x):
    class One:
        def call(self):
            return x + 1

    return sum(One().call() for _ in range(10))


FACTORS = random.Random(SEED)
factor = 1.0


def kernels(x):
    for i in range(5):
        x = (x * (factor + i)).softmax(-1).cumsum(0)
    return x


def new_kernels():
    """Argument of kernels(), whose code is new."""
    global factor
    factor = FACTORS.random()
    return torch.ones(3, 4)


PROGRAMS = {
    "objects": (objects, lambda: torch.ones(3)),
    "layers": (Layers(), lambda: torch.randn(4, 8, requires_grad=True)),
    "breaks": (breaks, lambda: torch.ones(3)),
    "generators": (generators, lambda: torch.ones(3)),
    "classes": (classes, lambda: torch.ones(3)),
    "kernels": (kernels, new_kernels),
}


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_handler_raises_is_raised(name, error, monkeypatch):
    function, make = PROGRAMS[name]
    raised, ignored = [], []

    def handler(number, frame):
        raised.append(frame)
        raise error

    # Python itself drops what is raised in a finalizer or in a callback of a weak reference.
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    def seconds(delay):
        """Of a first call, and whether the handler's error came out of it."""
        oxyfuel.reset()
        raised.clear()
        ignored.clear()
        compiled, argument = oxyfuel.compile(function), make()
        began, came_out = time.perf_counter(), False
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            try:
                compiled(argument)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except error:
            came_out = True
        return time.perf_counter() - began, came_out

    before = signal.signal(signal.SIGALRM, handler)
    try:
        whole = min(seconds(0)[0] for _ in range(3))
        generator = random.Random(SEED)
        interrupted = 0
        for _ in range(CALLS):
            delay = generator.uniform(2e-5, whole)
            _, came_out = seconds(delay)
            assert came_out == bool(raised) or ignored, f"OXYFUEL_SEED={SEED}: the signal after {delay} s was lost"
            interrupted += came_out
        assert interrupted > CALLS / 10
    finally:
        signal.signal(signal.SIGALRM, before)
    compiled, argument = oxyfuel.compile(function), make()
    torch.testing.assert_close(compiled(argument), function(argument))
