"""Programs from seeds, and some by hand, through the printer of Triton kernels and Triton's interpreter, against eager."""

import os
import re

import pytest
import torch

from chosen_programs import PROGRAMS as CHOSEN
from graph_programs import Program
from random_programs import Generator
from triton_tools import needs_triton, run_python, write_scripts

TOLERANCES = {torch.float64: 1e-12, torch.float32: 3e-4, torch.float16: 1e-2, torch.bfloat16: 4e-2}
FIRST_SEED = int(os.environ.get("OXYFUEL_SEED", "1"))
PROGRAMS = int(os.environ.get("OXYFUEL_TRITON_PROGRAMS", "25"))


def same(got, expected, tolerance):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if not expected.dtype.is_floating_point:
        return torch.equal(got, expected)
    scale = expected.double().nan_to_num(0, 0, 0).abs().max().item() if expected.numel() else 0
    return torch.allclose(got.double(), expected.double(), rtol=tolerance, atol=tolerance * max(1, scale), equal_nan=True)


def check(programs, folder, shapes=None, needs_form=True):
    """Runs (name, program, outputs) and lists those that differ from eager, by name. Without `needs_form`, graphs with
    operators that the text form of graphs does not know are left out."""
    write_scripts([program.graph(outputs) for _, program, outputs in programs], folder, shapes)
    for number, (_, program, _) in enumerate(programs):
        torch.save([tensor for _, tensor in program.inputs], folder / f"{number}.in")
    process = run_python("triton_runner.py", folder, TRITON_INTERPRET="1")
    assert process.returncode == 0, process.stderr
    failures = []
    for number, (name, program, outputs) in enumerate(programs):
        if (folder / f"{number}.error").exists():
            if not needs_form and (folder / f"{number}.error").read_text().startswith("line "):
                continue
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
@pytest.mark.parametrize("shapes", [None, FIRST_SEED])
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


def on_two_devices(text, second):
    """The graph with the values of these numbers on a second GPU and all others on the first. The program copies between them."""

    def placed(match):
        device = "cuda:1" if int(match[2]) in second else "cuda:0"
        inside = f"strides={match[4]}, " if match[4] else ""
        return f"{match[1]}{{{inside}device={device}}}"

    text = re.sub(r"(%(\d+) : \w+\[[^\]]*\])({strides=(\[[^\]]*\])})?", placed, text)
    return re.sub(r"(%\d+ : [^=]*{[^}]*device=(cuda:\d)} = aten::_to_copy\(%\d+)\)", r"\1, device=\2)", text)


class OnTwoDevices(Program):
    def __init__(self):
        super().__init__()
        self.second = set()

    def graph(self, outputs):
        return on_two_devices(super().graph(outputs), self.second)

    def there(self, results):
        """The results of a call are on the second device."""
        self.second |= {self.ids[id(r)] for r in (results if isinstance(results, tuple) else (results,))}
        return results


@needs_triton
def test_a_program_on_two_devices(tmp_path):
    """The plan has the buffers of both; here they all lie on the host, which shows what reads and writes which."""
    p = OnTwoDevices()
    x, w = p.input(torch.randn(5, 32)), p.input(torch.randn(32, 32))
    v = p.there(p.input(torch.randn(32, 32)))
    y = p.call("gelu", p.call("mm", p.call("sin", x), w))
    z = p.there(p.call("_to_copy", y))
    z = p.there(p.call("mm", p.there(p.call("tanh", z)), v))
    z = p.there(p.call("native_layer_norm", p.there(p.call("mm", p.there(p.call("relu", z)), v)), [32], None, None, 1e-5))[0]
    back = p.call("_to_copy", p.there(p.call("exp", z)))
    outputs = [p.call("add.Tensor", back, x), p.there(p.call("sum.dim_IntList", z, [0], False)), p.call("sum", y)]
    failures = check([("two devices", p, outputs)], tmp_path)
    assert not failures, "\n".join(failures)
    text = (tmp_path / "0.py").read_text()
    assert text.count("_to_copy") >= 2, text
