"""Backward passes that a thread compiles before they are asked for. Here on the CPU, where that is off by default."""

import os
import subprocess
import sys

import pytest

PREAMBLE = """
import os, threading
import torch, oxyfuel
from oxyfuel import _core

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))
x, y = torch.randn(5, 8), torch.randn(5, 4)

def losses(x, y):
    result = model(x)
    return (result - y).square().mean(), result, result.abs().amax(0)

def gradients(function, of):
    for parameter in model.parameters():
        parameter.grad = None
    sum(value.sum() for value in of(function(x, y))).backward()
    return [parameter.grad for parameter in model.parameters()]

def check(function, of):
    torch.testing.assert_close(gradients(function, of), gradients(losses, of))

def loss(results):
    return results[:1]

def another(results):
    return results[1:2]

def all_of(results):
    return results
"""

def noisy(gradient):
    """A program whose backward pass draws random numbers: `gradient` has the expression."""
    return f"""
class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return {gradient}

def noisy(x, y):
    return (Noisy.apply(model(x)).square().mean(),)

function = oxyfuel.compile(noisy)
torch.manual_seed(1)
expected = gradients(noisy, loss)
torch.manual_seed(1)
torch.testing.assert_close(gradients(function, loss), expected)
"""


PROGRAMS = {
    "a loss": "check(oxyfuel.compile(losses), loss)",
    "another result": "check(oxyfuel.compile(losses), another)",
    "all results": "check(oxyfuel.compile(losses), all_of)",
    "one after the other": """
function = oxyfuel.compile(losses)
for of in (another, loss, all_of, loss):
    check(function, of)
""",
    "no backward pass": """
for _ in range(5):
    oxyfuel.reset()
    oxyfuel.compile(losses)(x, y)
""",
    "before it has begun": """
_core.hold_background()
function = oxyfuel.compile(losses)
check(function, loss)
_core.release_background()
check(function, all_of)
""",
    "after it has ended": """
function = oxyfuel.compile(losses)
results = function(x, y)
_core.wait_for_background()
check(function, loss)
""",
    "in a child": """
function = oxyfuel.compile(losses)
result = function(x, y)[0]
if (child := os.fork()) == 0:
    result.backward()
    os._exit(0 if model[0].weight.grad.abs().sum() > 0 else 1)
assert os.waitpid(child, 0)[1] == 0
result.backward()
check(function, loss)
""",
    "in threads": """
function = oxyfuel.compile(losses)
results = [function(x, y)[0] for _ in range(4)]
threads = [threading.Thread(target=result.backward) for result in results]
for thread in threads: thread.start()
for thread in threads: thread.join()
check(function, loss)
""",
    "at the end": """
import atexit
state = {}
atexit.unregister(_core.end_background)
atexit.register(lambda: state["loss"].backward())
atexit.register(_core.end_background)  # runs first
state["loss"] = oxyfuel.compile(losses)(x, y)[0]
""",
    "a dropout in the backward pass": noisy("torch.nn.functional.dropout(gradient, 0.5)"),
    "random numbers without a dropout": noisy("gradient * torch.rand_like(gradient) + torch.bernoulli(torch.full_like(gradient, 0.3))"),
    "until the end": """
function = oxyfuel.compile(losses)
function(x, y)
""",
}


def run(program, **environment):
    environment = {**os.environ, "OXYFUEL_COMPILE_AHEAD": "1", "OXYFUEL_STRICT": "1", **environment}
    return subprocess.run([sys.executable, "-c", PREAMBLE + program], capture_output=True, text=True, timeout=240, env=environment)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_of_eager(program):
    done = run(PROGRAMS[program])
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("waits", [False, True], ids=["asked for early", "asked for late"])
@pytest.mark.parametrize("strict", ["0", "1"])
def test_errors_are_told_as_without(strict, waits, tmp_path):
    compiler, broken = tmp_path / "compiler", tmp_path / "broken"
    compiler.write_text(f"#!/bin/sh\n[ -e {broken} ] && exit 1\nexec c++ \"$@\"\n")
    compiler.chmod(0o755)
    program = f"""
_core.hold_background()
function = oxyfuel.compile(losses)
results = function(x, y)
open({str(broken)!r}, "w").close()
_core.release_background()
if {waits}:
    _core.wait_for_background()
try:
    results[0].backward()
    print(all(parameter.grad is not None for parameter in model.parameters()))
except Exception as error:
    print(type(error).__name__)
"""
    told = []
    for ahead in "01":
        broken.unlink(missing_ok=True)
        done = run(program, OXYFUEL_COMPILER="system", OXYFUEL_CXX=str(compiler), OXYFUEL_STRICT=strict, OXYFUEL_COMPILE_AHEAD=ahead)
        assert done.returncode == 0, done.stderr
        told.append((done.stdout.strip(), done.stderr))
    assert told[0] == told[1]
    assert told[0][0] == ("True" if strict == "0" else "RuntimeError") and ("a backward pass" in told[0][1]) == (strict == "0")
