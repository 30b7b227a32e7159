"""A few of CPython's own test modules: every test has the outcome that it has without us."""

import importlib.util
import os
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[3] / "cpython" / "run.py"


def runner():
    spec = importlib.util.spec_from_file_location("cpython_runner", RUNNER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(name):
    return importlib.util.find_spec("test") is not None and importlib.util.find_spec("test." + name) is not None


@pytest.mark.parametrize("name", ["test_raise", "test_with", "test_patma"])
def test_same_outcomes(name):
    if not installed(name):
        pytest.skip("this Python was installed without its tests")
    run = runner()
    _, count, differing = run.compare(name, timeout=200)
    assert count > 20
    assert {test: outcome for test, outcome in differing.items() if not run.reason_for(name, test)} == {}


def test_the_runner_sees_a_difference(tmp_path, monkeypatch):
    (tmp_path / "made_up").mkdir()
    (tmp_path / "made_up" / "__init__.py").touch()
    (tmp_path / "made_up" / "sample.py").write_text(
        "import unittest\n"
        "import oxyfuel\n"
        "class Tests(unittest.TestCase):\n"
        "    def test_same(self):\n"
        "        self.assertEqual(1 + 1, 2)\n"
        "    def test_other(self):\n"
        "        compiled = oxyfuel.is_compiling()\n"
        "        oxyfuel.graph_break()\n"
        "        self.assertFalse(compiled)\n"
    )
    if not installed("support"):
        pytest.skip("this Python was installed without its tests")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    _, count, differing = runner().compare("made_up.sample", timeout=100)
    assert count == 2
    assert {test.rsplit(".", 1)[1]: outcome[:2] for test, outcome in differing.items()} == {"test_other": ("ok", "failure")}
