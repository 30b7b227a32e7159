"""Small models through the printer of Triton kernels and Triton's interpreter: forward passes and training steps, against eager.

With OXYFUEL_TRITON_MODELS=all, and in `./oxy test --all`, their kernels are compiled as well.
"""

import os
import sys

import pytest
import torch

from recorded_programs import recorded
from test_triton_programs import check
from triton_tools import ROOT, compile_scripts, needs_triton, write_scripts

sys.path.insert(0, str(ROOT / "benchmarks"))
models = pytest.importorskip("models", reason="the models need transformers and timm")


def forward_pass(name):
    case = models.Case(name, "small", 2)
    model, inputs = case.build(), case.inputs()
    with torch.no_grad():
        return recorded(lambda: [tensor for _, tensor in models.accuracy.tensors_of(model(**inputs))])


def training_step(name):
    case = models.Case(name, "small", 2, name in models.LANGUAGE_NAMES, "training")
    model, inputs = case.build(), case.inputs()
    models.without_dropout(model)
    if name not in models.LANGUAGE_NAMES:
        model.eval()  # statistics of batches are written to buffers, which a graph without writes cannot

    def step():
        loss = case.loss(model(**inputs))
        loss.backward()
        return [loss, *(p.grad for p in model.parameters() if p.grad is not None)]

    return recorded(step)


PROGRAMS = {"forward": forward_pass, "training": training_step}
# Others take the interpreter minutes.
GROUPS = {"languages": models.LANGUAGE_NAMES, "images": ("vit", "convnext")}


@needs_triton
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", PROGRAMS)
def test_models(kind, group, tmp_path):
    programs = [(name, *PROGRAMS[kind](name)) for name in GROUPS[group]]
    assert all(outputs for _, _, outputs in programs)
    failures = check(programs, tmp_path)
    assert not failures, "\n".join(failures)


@needs_triton
@pytest.mark.skipif(os.environ.get("OXYFUEL_TRITON_MODELS") != "all", reason="takes minutes: OXYFUEL_TRITON_MODELS=all")
@pytest.mark.parametrize("architecture, shapes", [(80, None), (90, "early")])
@pytest.mark.parametrize("name", models.NAMES)
def test_kernels_of_models_compile(name, architecture, shapes, tmp_path):
    graphs = [program.graph(outputs) for program, outputs in (make(name) for make in PROGRAMS.values())]
    write_scripts(graphs, tmp_path, shapes)
    errors = [file.read_text() for file in tmp_path.glob("*.error")]
    assert not errors, errors
    assert len(compile_scripts(tmp_path, architecture)) > len(graphs)
