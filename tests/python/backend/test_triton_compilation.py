"""Every kernel of the golden texts compiles to machine code for the oldest and the newest GPU that is supported."""

import pytest
from chosen_programs import PROGRAMS as CHOSEN
from graph_programs import Program
from triton_tools import ROOT, compile_scripts, needs_triton, run_python, write_scripts

GOLDEN = sorted((ROOT / "tests/golden/triton").glob("*.txt"))


@needs_triton
def test_golden_kernels_compile(tmp_path):
    for file in GOLDEN:
        (tmp_path / f"{file.stem}.py").write_text(file.read_text().partition("----\n")[2])
    results = compile_scripts(tmp_path, 80, 90)
    assert len(results) >= 2 * len(GOLDEN)
    spilled = {name: r["spilled_bytes"] for name, r in results.items() if r["spilled_bytes"]}
    assert not spilled, f"values do not fit in registers: {spilled}"


@needs_triton
@pytest.mark.parametrize("architecture, shapes", [(80, None), (90, "early")])
def test_kernels_of_chosen_programs_compile(architecture, shapes, tmp_path):
    """The interpreter takes more than the compiler does. Kernels that start early are for the newer GPU alone."""
    graphs = []
    for function in CHOSEN.values():
        program = Program()
        graphs.append(program.graph(function(program)))
    write_scripts(graphs, tmp_path, shapes)
    if shapes == "early":
        for text in (file.read_text() for file in tmp_path.glob("*.py")):
            launches, kernels = text.count('_launch["options"])'), text.count("_launch = {")
            assert text.count("gdc_wait()") == (kernels if launches > 1 else 0)
    assert len(compile_scripts(tmp_path, architecture)) > len(graphs)


def test_an_assertion_names_the_line_that_asked_for_the_index(tmp_path):
    """Not that of the operator behind it, which the kernel performs as well."""
    graph = """graph(%0 : float32[100, 8], %1 : int64[64]) {
  %2 : float32[64, 8] = aten::embedding(%0, %1)  # model.py:12 in forward "x"
  %3 : float32[64, 8] = aten::add.Scalar(%2, 1, 1)  # model.py:13 in forward
  return %3
}
"""
    write_scripts([graph], tmp_path)
    text = (tmp_path / "0.py").read_text()
    assert text.count("@triton.jit") == 1 and text.count("device_assert") == 1
    assert 'index out of range at model.py:12 in forward \\"x\\""' in text
    assert "model.py:13" not in text


@needs_triton
def test_the_benchmark_reads_every_golden_text():
    process = run_python("../../../benchmarks/gpu/kernels.py", "--dry-run")
    assert process.returncode == 0, process.stdout + process.stderr
    read = [file for file in GOLDEN if "oxyfuel::" not in file.read_text()]  # eager has none of our own operators
    assert process.stdout.count("\n") == len(read) + 1


def test_there_are_golden_texts():
    assert len(GOLDEN) >= 25 and all("@triton.jit" in f.read_text() or "torch.ops" in f.read_text() for f in GOLDEN)
