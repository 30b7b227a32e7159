"""What stays when compiled functions are gone."""

import gc
from pathlib import Path

import torch

import oxyfuel

MEBIBYTE = 1 << 20


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def compile_and_forget(numbers):
    for number in numbers:
        compiled = oxyfuel.compile(eval(f"lambda x: (x * {number}.5 + 1).sin()"))  # kernels that nobody has
        compiled(torch.ones(100))
    del compiled
    oxyfuel.reset()
    gc.collect()


def test_compilations_leave_nothing():
    compile_and_forget(range(40))
    before = resident_bytes()
    compile_and_forget(range(40, 140))
    grown = resident_bytes() - before
    assert grown < 8 * MEBIBYTE, f"{grown / MEBIBYTE:.1f} MiB for 100 compilations"
