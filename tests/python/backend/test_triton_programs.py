"""Programs from seeds, and some by hand, through the printer of Triton kernels and Triton's interpreter, against eager."""

import os

import pytest
import torch

from chosen_programs import PROGRAMS as CHOSEN
from graph_programs import Program
from random_programs import Generator
from triton_tools import needs_triton, run_python, write_scripts

TOLERANCES = {torch.float64: 1e-6, torch.float32: 3e-4, torch.float16: 1e-2, torch.bfloat16: 4e-2}
FIRST_SEED = int(os.environ.get("OXYFUEL_SEED", "1"))
PROGRAMS = int(os.environ.get("OXYFUEL_TRITON_PROGRAMS", "25"))


def same(got, expected, tolerance):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if not expected.dtype.is_floating_point:
        return torch.equal(got, expected)
    scale = expected.double().nan_to_num(0, 0, 0).abs().max().item() if expected.numel() else 0
    return torch.allclose(got.double(), expected.double(), rtol=tolerance, atol=tolerance * max(1, scale), equal_nan=True)


def check(programs, folder, shapes=None):
    """Runs (name, program, outputs) and lists those that differ from eager, by name."""
    write_scripts([program.graph(outputs) for _, program, outputs in programs], folder, shapes)
    for number, (_, program, _) in enumerate(programs):
        torch.save([tensor for _, tensor in program.inputs], folder / f"{number}.in")
    process = run_python("triton_runner.py", folder, TRITON_INTERPRET="1")
    assert process.returncode == 0, process.stderr
    failures = []
    for number, (name, program, outputs) in enumerate(programs):
        if (folder / f"{number}.error").exists():
            failures.append(f"{name}: not compiled: {(folder / f'{number}.error').read_text()}\n{program.graph(outputs)}")
            continue
        result = torch.load(folder / f"{number}.out")
        if "error" in result:
            failures.append(f"{name}: {result['error']}\n{program.graph(outputs)}")
            continue
        tolerance = max((TOLERANCES.get(t.dtype, 0) for t in program.kept), default=0)
        for k, (got, expected) in enumerate(zip(result["outputs"], outputs, strict=True)):
            if not same(got, expected, tolerance):
                failures.append(f"{name}: output {k} is {got} instead of {expected}\n{program.graph(outputs)}")
    return failures


@needs_triton
@pytest.mark.parametrize("shapes", [None, FIRST_SEED])
def test_programs_from_seeds(tmp_path, shapes):
    programs = []
    for seed in range(FIRST_SEED, FIRST_SEED + PROGRAMS):
        program, outputs = Generator(seed).run()
        if outputs:
            programs.append((f"OXYFUEL_SEED={seed}", program, outputs))
    failures = check(programs, tmp_path, shapes)
    assert not failures, f"{len(failures)} of {len(programs)} differ from eager:\n" + "\n".join(failures)


@needs_triton
@pytest.mark.parametrize("shapes", [None, FIRST_SEED, FIRST_SEED + 1])
def test_chosen_programs(tmp_path, shapes):
    programs = []
    for name, function in CHOSEN.items():
        program = Program()
        programs.append((name, program, function(program)))
    failures = check(programs, tmp_path, shapes)
    assert not failures, f"{len(failures)} of {len(programs)} differ from eager:\n" + "\n".join(failures)


@needs_triton
def test_an_index_out_of_range_is_an_assertion(tmp_path):
    program = Program()
    x, index = program.input(torch.randn(5, 3)), program.input(torch.tensor([0, 4, 2]))
    outputs = [program.call("index_select", x, 0, index)]
    index[1] = 5
    (failure,) = check([("gather", program, outputs)], tmp_path)
    assert "AssertionError: index out of range" in failure
