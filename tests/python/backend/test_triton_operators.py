"""Operators of PyTorch's table of samples through the printer of Triton kernels and Triton's interpreter, against eager."""

import os

import pytest
import torch
from torch.utils import _pytree as pytree

from recorded_programs import NotRecorded, recorded
from test_triton_programs import check
from triton_tools import needs_triton

operators = pytest.importorskip("operators", reason="torch.testing's operators need expecttest")

PARTS = 8
SAMPLES = int(os.environ.get("OXYFUEL_TRITON_SAMPLES", "1"))  # of each operator; 0: all


def programs_of(op):
    """(name, program, outputs) of the operator's samples that have a form in a graph."""
    torch.manual_seed(0)
    for i, sample in enumerate(operators.spread(op.sample_inputs("cpu", torch.float32), SAMPLES)):
        arguments = operators.copy_of((sample.input, tuple(sample.args), dict(sample.kwargs)))
        tensors = [leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
        if any(type(tensor) is not torch.Tensor or tensor.layout != torch.strided or tensor.is_complex() for tensor in tensors):
            continue

        def call():
            results = op.get_op()(arguments[0], *arguments[1], **arguments[2])
            return [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]

        try:
            with torch.no_grad():
                program, outputs = recorded(call)
        except (NotRecorded, RuntimeError, AssertionError):  # or an operator of other devices
            continue
        if outputs and not any(tensor.is_complex() for tensor in program.kept):
            yield f"{operators.name_of(op)}, sample {i}", program, outputs


@needs_triton
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_operators(part, tmp_path):
    left_out = {*operators.UNDEFINED, "as_strided"}  # the latter sees memory around its argument, which no graph is given
    chosen = [op for op in operators.operators() if op.name not in left_out and torch.float32 in op.supported_dtypes("cpu")]
    programs = [program for op in chosen[part::PARTS] for program in programs_of(op)]
    assert len(programs) > 0.6 * len(chosen) / PARTS  # most have a form in a graph
    failures = check(programs, tmp_path, needs_form=False)
    assert len(list(tmp_path.glob("*.out"))) > 0.8 * len(programs)
    assert not failures, f"{len(failures)} of {len(programs)} differ from eager:\n" + "\n".join(failures)
