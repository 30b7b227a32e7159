"""The recorder's checks, in a process of their own: a second copy of the recorder cannot share the dispatch key."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "trace_testing"


@pytest.mark.skipif("OXYFUEL_TRACE_TESTING" not in os.environ,
                    reason="OXYFUEL_TRACE_TESTING names the folder of the module")
@pytest.mark.parametrize("checks", ["recorder_checks.py", "functionalise_checks.py", "symbol_checks.py"])
def test_checks(checks):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "-x", str(FOLDER / checks)]
    result = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
