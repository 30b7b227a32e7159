"""What stays when compiled functions are gone."""

import gc
import os
import subprocess
import sys
import weakref
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


class Trainer:
    def __init__(self):
        self.model = torch.nn.Linear(3, 3)
        self.step = oxyfuel.compile(lambda x: self.model(x))


def test_cycles_through_compiled_functions_are_collected():
    trainer = Trainer()
    for rows in (1, 2):
        trainer.step(torch.ones(rows, 3))
    ended = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert ended() is None


def test_a_function_that_names_its_own_compiled_function():
    namespace = {"torch": torch, "oxyfuel": oxyfuel}
    exec("class Held: pass\nheld = Held()\ndef f(x): return x + (2 if g else 3)\ng = oxyfuel.compile(f)\ng(torch.ones(2))", namespace)
    ended = weakref.ref(namespace["held"])
    namespace = None
    gc.collect()
    assert ended() is None


AT_EXIT = """
import torch, oxyfuel
class Speaks:
    def __del__(self): print("ended")
held = Speaks()
compiled = oxyfuel.compile(lambda x: x * 2)
compiled(torch.ones(2))
"""


def test_objects_end_with_the_process():
    run = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert run.stdout == "ended\n", run.stderr
