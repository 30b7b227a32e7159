"""Documents that are made from the sources are up to date."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_instruction_table():
    done = subprocess.run([sys.executable, ROOT / "tools" / "instruction_table", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
