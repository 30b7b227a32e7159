"""Where Triton is, and how tests call it: always in a process of its own."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WRITER = ROOT / "build" / "oxyfuel_triton_scripts"


def environment():
    """For a process with Triton: this Python's own, or the folder that OXYFUEL_TRITON names."""
    folder = os.environ.get("OXYFUEL_TRITON", "")
    path = os.pathsep.join(p for p in (folder, os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path}


def has_triton():
    folder = os.environ.get("OXYFUEL_TRITON", "")
    return (Path(folder) / "triton").is_dir() if folder else importlib.util.find_spec("triton") is not None


needs_triton = pytest.mark.skipif(not has_triton(), reason="no Triton: install it, or set OXYFUEL_TRITON to a folder with it")


def write_scripts(graphs, folder, shapes=None):
    """Plans of the graphs as <folder>/<number>.py; the number of steps of each. `shapes`: a seed for the block shapes, or
    "early" for kernels that start early."""
    (folder / "graphs.txt").write_text("----\n".join(graphs))
    option = [] if shapes is None else [str(shapes)]
    result = subprocess.run([WRITER, folder / "graphs.txt", folder, *option], capture_output=True, text=True, check=True)
    return [int(line) for line in result.stdout.split()]


def compile_scripts(folder, *architectures):
    """What triton_compiler.py says of each kernel of the folder. All of them have to compile."""
    process = run_python("triton_compiler.py", folder, *architectures, TRITON_CACHE_DIR=str(folder / "cache"))
    assert process.returncode == 0, process.stderr
    results = json.loads(process.stdout)
    failures = [f"{name}: {result['error']}" for name, result in results.items() if "error" in result]
    assert not failures, "\n".join(failures)
    return results


def run_python(script, *arguments, **variables):
    return subprocess.run([sys.executable, HERE / script, *map(str, arguments)], env={**environment(), **variables}, capture_output=True, text=True)
