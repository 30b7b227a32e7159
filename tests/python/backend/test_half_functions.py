"""Functions that kernels for GPUs compute to half precision's needs alone: all numbers of float16, against float64.

Triton's interpreter truncates to bfloat16: those numbers are for tests/gpu.
"""

import pytest
import torch
import torch.nn.functional as F

from triton_tools import needs_triton, run_python, write_scripts

FUNCTIONS = {
    "aten::tanh(%0)": torch.tanh,
    "aten::erf(%0)": torch.erf,
    "aten::sigmoid(%0)": torch.sigmoid,
    "aten::gelu(%0)": F.gelu,
    'aten::gelu(%0, approximate="tanh")': lambda x: F.gelu(x, approximate="tanh"),
}


def errors(results, exact):
    """Of all results, relative to the exact ones."""
    return (results.double() - exact).abs() / exact.abs()


@needs_triton
def test_all_numbers(tmp_path):
    graphs = []
    numbers = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16)
    for number, call in enumerate(FUNCTIONS):
        torch.save([numbers], tmp_path / f"{number}.in")
        tensor = f"float16[{len(numbers)}]"
        graphs.append(f"graph(%0 : {tensor}) {{\n  %1 : {tensor} = {call}\n  return %1\n}}\n")
    write_scripts(graphs, tmp_path)
    process = run_python("triton_runner.py", tmp_path, TRITON_INTERPRET="1")
    assert process.returncode == 0, process.stderr
    for number, call in enumerate(FUNCTIONS):
        result = torch.load(tmp_path / f"{number}.out")
        assert "error" not in result, result["error"]
        (ours,) = result["outputs"]
        exact = FUNCTIONS[call](numbers.double())
        eagers = FUNCTIONS[call](numbers.float()).half()
        known = ~numbers.isinf()  # a gelu of infinity depends on the device
        assert torch.equal(ours.isnan()[known], eagers.isnan()[known]), call
        counts = known & exact.isfinite() & eagers.isfinite() & (exact.abs() > 2 * torch.finfo(torch.half).tiny)  # the interpreter truncates smaller ones
        error, eager = errors(ours, exact)[counts], errors(eagers, exact)[counts]
        assert (error <= 1.1 * eager.clamp(min=torch.finfo(torch.half).eps / 2)).all(), (call, error.max())


@pytest.mark.parametrize("rest", ["", "  %2 : float32[64] = aten::_to_copy(%1, dtype=float32)\n"])
def test_only_what_is_rounded_at_once(tmp_path, rest):
    """A function of float32 keeps its precision, whatever the result is rounded to."""
    last = "%2" if rest else "%1"
    of_half = "graph(%0 : bfloat16[64]) {\n  %1 : bfloat16[64] = aten::tanh(%0)\n" + rest + f"  return {last}\n}}\n"
    of_float = (
        "graph(%0 : float32[64]) {\n  %1 : float32[64] = aten::tanh(%0)\n  %2 : float32[64] = aten::sub.Tensor(%1, %0)\n"
        "  %3 : bfloat16[64] = aten::_to_copy(%2, dtype=bfloat16)\n  return %3\n}\n"
    )
    write_scripts([of_half, of_float], tmp_path)
    assert "tanh_for_half" in (tmp_path / "0.py").read_text()
    assert "tanh_for_half" not in (tmp_path / "1.py").read_text() and "libdevice.tanh" in (tmp_path / "1.py").read_text()
