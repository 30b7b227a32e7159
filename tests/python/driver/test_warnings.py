"""Warnings of torch functions: as often as in eager, of the same class and text, from the same line."""

import itertools
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from eager_comparison import program

ones = torch.ones


def mean_in_a_callee(x):
    return F.mse_loss(x, x[:1])


EACH_TIME = {
    "var": lambda x: x.var(0, correction=3),
    "std": lambda x: x.std() + x[0].std(),
    "std_mean": lambda x: torch.std_mean(x[:1]),
    "var_mean of nothing": lambda x: torch.var_mean(x[:0]),
    "broadcasting loss": lambda x: F.mse_loss(x, x[:1]),
    "in a callee": lambda x: mean_in_a_callee(x * 2) + 1,
    "twice": lambda x: mean_in_a_callee(x) + mean_in_a_callee(x + 1),
    "implicit dim": lambda x: F.softmax(x),
    "implicit dim, last": lambda x: F.log_softmax(x + 1) * 2,
    "range": lambda x: torch.range(0, 2) + x[0],
    "copying constructor": lambda x: torch.tensor(x) + 1,
    "kl_div": lambda x: F.kl_div(x, x),
    "legacy reduction": lambda x: F.binary_cross_entropy(x, x, size_average=True),
    "byte index": lambda x: x[ones(2, dtype=torch.uint8)],
    "out of another size": lambda x: torch.add(x, 2, out=torch.empty(3)),
    "refused after it": lambda x: F.dropout2d(x),
    "grad of no leaf": lambda x: (x * 2).grad,
    "grid": lambda x: F.grid_sample(ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 2)) + x,
    "the program's own": lambda x: (x + 1, warnings.warn("own", stacklevel=1))[0],
    "none": lambda x: x.var(0, correction=0) + x.std(),
}


def shown(function, calls=3, action="always"):
    found = []
    for _ in range(calls):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            try:
                function(ones(2, requires_grad=True))
            except Exception as error:
                found.append((type(error), str(error)))
        found.append([(w.category, str(w.message), w.filename, w.lineno) for w in caught])
    return found


@pytest.mark.parametrize("action", ["always", "error", "ignore"])
@pytest.mark.parametrize("name", EACH_TIME)
def test_at_each_call(name, action):
    function = EACH_TIME[name]
    assert shown(oxyfuel.compile(function), action=action) == shown(function, action=action)


def test_filters_are_left_as_they_are():
    before = list(warnings.filters), warnings._showwarnmsg
    for name in EACH_TIME:
        shown(oxyfuel.compile(EACH_TIME[name]), calls=1)
    assert (list(warnings.filters), warnings._showwarnmsg) == before


# Warned of once in a process: what has been shown by eager is not shown again, so that each has its own.
ONCE = """
    import sys
    import warnings
    import torch
    import oxyfuel

    def transposed(x):
        y = x[None, None]
        return y.T

    functions = {
        "T": lambda x: transposed(x),
        "meshgrid": lambda x: torch.meshgrid(x, x),
        "byte condition": lambda x: torch.where(torch.ones(2, dtype=torch.uint8), x, x),
        "alpha": lambda x: torch.add(x, 2, x),
        "kernel": lambda x: (x * 1j).to(torch.float32),
        "cross": lambda x: torch.cross(torch.ones(3, 3), torch.ones(3, 3)),
    }
    action = sys.argv[2]
    for name, function in functions.items():
        called = oxyfuel.compile(function) if sys.argv[1] == "compiled" else function
        for _ in range(3):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(action)
                try:
                    called(torch.ones(2))
                except Warning as error:
                    print(name, "raises", error)
            # What only a kernel warns of comes from the line of the call.
            print(name, [(str(w.message), w.filename, w.lineno if name != "kernel" else 0) for w in caught])
"""


@pytest.mark.parametrize("action", ["always", "error"])
def test_once(action, tmp_path):
    script = tmp_path / "once.py"
    script.write_text(textwrap.dedent(ONCE))

    def run(side):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, script, side, action], capture_output=True, text=True, env=environment, check=True
        )
        return done.stdout

    assert run("compiled") == run("eager")


@program(False)
def test_no_warning_of_iterators_that_outlive_a_region(compile):
    def f(x):
        for i in itertools.count(1):
            if x.sum() > 5:
                return x, i
            x = x + 1

    g = compile(f)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        found = [g(torch.zeros(2)) for _ in range(3)]
    return found, [str(warning.message) for warning in record]
