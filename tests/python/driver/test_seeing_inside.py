"""What OXYFUEL_LOGS and OXYFUEL_DUMP show of a compilation; the variables are read once, so each case is a process."""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("oxyfuel._core")

PROGRAM = """
import torch, oxyfuel
f = oxyfuel.compile(lambda x, y: torch.softmax(torch.nn.functional.gelu(x + y), -1))
with torch.no_grad():
    f(torch.randn(6, 100), torch.randn(6, 100))
"""
CHANNELS = {"graph", "loops", "schedule", "code", "guards", "breaks", "recompiles", "dynamic", "device_graphs", "timing"}


def run(program=PROGRAM, **environment):
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "PYTHONPATH": paths, **environment})


def channels_in(text):
    return {line[1:line.index("]")] for line in text.splitlines() if line.startswith("[")}


def test_help_lists_every_channel_and_shows_none():
    result = run(OXYFUEL_LOGS="help")
    assert result.returncode == 0
    assert result.stderr.startswith("OXYFUEL_LOGS takes")
    listed = {line.split()[0] for line in result.stderr.splitlines()[1:]}
    assert listed == CHANNELS


def test_a_wrong_channel_is_an_error_that_names_the_variable_and_the_channels():
    result = run("import oxyfuel", OXYFUEL_LOGS="graph,kernel")
    assert result.returncode == 1
    message = result.stderr.splitlines()[-1]
    assert message.startswith("ValueError: OXYFUEL_LOGS: unknown log channel 'kernel': the channels are graph, ")


@pytest.mark.parametrize("wanted", [{"code"}, {"graph", "timing"}, {"loops", "schedule", "guards"}])
def test_a_subset_of_channels(wanted):
    result = run(OXYFUEL_LOGS=",".join(sorted(wanted)))
    assert result.returncode == 0
    assert channels_in(result.stderr) == wanted


def test_breaks_and_recompiles():
    program = PROGRAM + """
@oxyfuel.compile
def g(x):
    y = x + 1
    print("here")
    return y * 2
with torch.no_grad():
    g(torch.ones(3)), f(torch.randn(5, 100), torch.randn(5, 100))
"""
    result = run(program, OXYFUEL_LOGS="breaks,recompiles")
    assert result.returncode == 0
    assert channels_in(result.stderr) == {"breaks", "recompiles"}
    assert "print" in result.stderr


def test_a_dump_has_every_stage_and_kernels_that_run_alone(tmp_path):
    result = run(OXYFUEL_DUMP=str(tmp_path))
    assert result.returncode == 0 and result.stderr == ""
    (folder,) = tmp_path.iterdir()
    stages = {path.name for path in folder.iterdir() if path.is_file()}
    assert {"recorded.txt", "graph.txt", "loops.txt", "schedule.txt", "plan.txt"} <= stages
    kernels = sorted((folder / "kernels").iterdir())
    assert kernels
    compiler = shutil.which("g++") or shutil.which("clang++-19")
    if compiler is None:
        pytest.skip("no C++ compiler")
    for kernel in kernels:
        program = tmp_path / "alone"
        subprocess.run([compiler, "-O3", "-march=native", kernel, "-o", program], check=True, cwd=tmp_path)
        output = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout
        assert output.startswith(kernel.stem + ": ") and output.endswith(" us a call\n")


def test_a_dump_that_cannot_be_written_is_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    result = run(OXYFUEL_DUMP=str(tmp_path / "file" / "folder"))
    assert result.returncode == 0
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("oxyfuel: OXYFUEL_DUMP: cannot write")
