"""What bad surroundings get: a clear message, and eager goes on."""

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, source_line

PREAMBLE = """
import os, resource, signal, threading, time
import torch, oxyfuel

@oxyfuel.compile
def f(x):
    return (x.sin() + 1).softmax(-1)

def check():
    x = torch.randn(7, 33)
    with torch.no_grad():
        torch.testing.assert_close(f(x), (x.sin() + 1).softmax(-1))
    return oxyfuel.metrics()
"""


def run_script(text, **environment):
    """A new process: variables are read once, and limits cannot be lifted again."""
    folder = str(Path(oxyfuel.__file__).parents[1])
    variables = {**os.environ, "OXYFUEL_STRICT": "0", "PYTHONPATH": folder, **environment}
    return subprocess.run([sys.executable, "-c", PREAMBLE + textwrap.dedent(text)], env=variables, capture_output=True, text=True, timeout=240)


def test_no_compiler(tmp_path):
    done = run_script(
        """
        reasons = [b["reason"] + b["hint"] for b in check()["breaks"]]
        assert any("compiler" in reason or "OXYFUEL_CXX" in reason for reason in reasons), reasons
        assert check()["calls_eager"] == 2
        """,
        OXYFUEL_COMPILER="system", OXYFUEL_CXX=str(tmp_path / "nothing"), PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_fullgraph_says_that_there_is_no_compiler(tmp_path):
    done = run_script("oxyfuel.compile(lambda x: x + 1, fullgraph=True)(torch.ones(3))", OXYFUEL_COMPILER="system", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "oxyfuel._api.Unsupported: no C++ compiler found" in done.stderr and "install g++" in done.stderr


def test_a_compiler_that_fails(tmp_path):
    broken = tmp_path / "c++"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo broken 1.0\necho "No space left on device" >&2\nexit 1\n')
    broken.chmod(0o755)
    done = run_script(
        """
        reasons = [b["reason"] + b["hint"] for b in check()["breaks"]]
        assert any("disk is full" in reason and "TMPDIR" in reason for reason in reasons), reasons
        """,
        OXYFUEL_COMPILER="system", OXYFUEL_CXX=str(broken))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["", "system"])
def test_a_full_disk(compiler, tmp_path):
    done = run_script(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))
        check()
        """,
        OXYFUEL_COMPILER=compiler, OXYFUEL_DUMP=str(tmp_path / "dump"), TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("OXYFUEL_DUMP: cannot write") == 1 and "File too large" in done.stderr


@pytest.mark.parametrize("where", ["/proc/nothing", "/dev/null/dump", "file"])
def test_a_dump_folder_that_cannot_be_written(where, tmp_path):
    if where == "file":
        where = tmp_path / "file"
        where.write_text("")
    done = run_script("assert check()['graphs'] == 1 and check()['calls_compiled'] == 2", OXYFUEL_DUMP=str(where))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"OXYFUEL_DUMP: cannot write {where}") == 1


@pytest.mark.parametrize("compiler", ["", "system"])
def test_no_home_and_no_temporary_folder(compiler):
    script = """
        metrics = check()
        if os.environ["OXYFUEL_COMPILER"] == "system":
            assert any("TMPDIR" in b["hint"] for b in metrics["breaks"]), metrics["breaks"]
        else:
            assert metrics["calls_compiled"] == 1
        """
    done = run_script(script, OXYFUEL_COMPILER=compiler, HOME="/nonexistent", XDG_CACHE_HOME="/proc", TMPDIR="/proc/nothing")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("variable, value, words", [
    ("OXYFUEL_STRICT", "maybe", "expected 0 or 1"),
    ("OXYFUEL_COMPILER", "icc", "expected one of clang, system"),
    ("OXYFUEL_ISA", "mmx", "expected one of scalar"),
    ("OXYFUEL_COMPILE_THREADS", "many", "expected a number"),
    ("OXYFUEL_LOGS", "everything", "everything"),
])
def test_wrong_settings_are_named(variable, value, words):
    done = run_script("check()", **{variable: value})
    assert done.returncode != 0 and variable in done.stderr and words in done.stderr, done.stderr


def test_keyboard_interrupt_while_it_runs():
    done = run_script(
        """
        @oxyfuel.compile
        def forever(x):
            while True:
                x = x + 1
                time.sleep(0.01)

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored

        def interrupt():
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        try:
            forever(torch.ones(2))
        except KeyboardInterrupt:
            check()
            print("interrupted")
        """)
    assert done.returncode == 0 and "interrupted" in done.stdout, done.stderr


def test_keyboard_interrupt_while_it_captures():
    done = run_script(
        """
        @oxyfuel.compile
        def long(x):
            for i in range(100_000_000):
                x = x + i
            return x

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored

        def interrupt():
            time.sleep(1.5)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        began = time.monotonic()
        try:
            long(torch.ones(2))
        except KeyboardInterrupt:
            assert time.monotonic() - began < 60
            check()
            print("interrupted")
        """)
    assert done.returncode == 0 and "interrupted" in done.stdout, done.stderr


def test_endless_recursion():
    def f(x):
        return f(x + 1)

    def g(x, n):
        return x if n == 0 else g(x + 1, n - 1)

    with pytest.raises(RecursionError):
        oxyfuel.compile(f)(torch.ones(2))
    assert oxyfuel.compile(g)(torch.ones(2), 150).tolist() == [151, 151]


def test_an_exception_in_the_middle_of_a_model():
    class Layer(torch.nn.Module):
        def __init__(self, limit):
            super().__init__()
            self.linear, self.limit = torch.nn.Linear(4, 4), limit

        def forward(self, x):
            x = self.linear(x).relu()
            if x.shape[0] > self.limit:
                raise ValueError(f"{x.shape[0]} rows are too many")  # here
            return x

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(Layer(limit) for limit in (9, 3, 9))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    model = Model()
    compiled = oxyfuel.compile(model)
    with torch.no_grad():
        torch.testing.assert_close(compiled(torch.ones(2, 4)), model(torch.ones(2, 4)))
        for _ in range(2):
            expected, actual = outcome(model, torch.ones(5, 4)), outcome(compiled, torch.ones(5, 4))
            assert expected == actual and expected[1] is ValueError
            assert expected[3][-1] == ("forward", source_line(Layer.forward, "# here"))
        torch.testing.assert_close(compiled(torch.ones(2, 4)), model(torch.ones(2, 4)))


def assert_same_failure(expected, actual):
    """The text goes on with addresses."""
    assert expected[:2] == actual[:2] and expected[0] == "raised"
    assert expected[2].split("\n")[0] == actual[2].split("\n")[0] and "allocate" in expected[2]


def test_no_memory():
    def f(x):
        return x.sin(), torch.ones(1 << 24, 1 << 24).mul(2)

    expected, actual = outcome(f, torch.ones(1)), outcome(oxyfuel.compile(f), torch.ones(1))
    assert_same_failure(expected, actual)


@pytest.fixture
def limited_memory():
    """No machine gives out more addresses than this, however much it promises otherwise."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 44, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_no_memory_for_what_lies_between(limited_memory):
    """A plan needs more at once than there is: eager says so."""
    def f(x):
        y = torch.zeros(1 << 23, 1 << 23, dtype=torch.uint8)
        y[0, 0] = 1
        return x + y.sort(0)[0].float().mean()

    expected, actual = outcome(f, torch.ones(1)), outcome(oxyfuel.compile(f), torch.ones(1))
    assert_same_failure(expected, actual)
