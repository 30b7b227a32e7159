"""Real models, small: one graph each, right by the rule of benchmarks/accuracy.py, nothing of torch.compile's run."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

for package in ("transformers", "timm"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

import accuracy  # noqa: E402
import models  # noqa: E402

import oxyfuel  # noqa: E402

CASES = [
    models.Case(name, "small", batch, labels, mode)
    for name in models.NAMES
    for batch in (1, 4)
    for labels in ((False, True) if name in models.LANGUAGE_NAMES else (False,))
    for mode in (("no_grad", "inference_mode") if batch == 1 else ("no_grad",))
]


def identifier(case):
    return f"{case.model}-b{case.batch}{'-labels' if case.labels else ''}-{case.mode}"


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()
    yield
    oxyfuel.reset()


def check(case, options=None):
    model, inputs = case.build(), case.inputs()
    compiled = oxyfuel.compile(model, fullgraph=True, options=options)
    with case.grad_mode():
        expected = model(**inputs)
        reference = accuracy.in_float64(model, inputs)
        for call in ("first", "second"):
            verdict = accuracy.compare(compiled(**inputs), expected, reference)
            assert verdict.ok, (call, verdict.problems)
    return oxyfuel.metrics()


@pytest.mark.parametrize("case", CASES, ids=identifier)
def test_is_one_graph_and_right(case):
    metrics = check(case)
    assert metrics["graphs"] == 1
    assert not metrics["breaks"]
    assert not metrics["shape_fallbacks"]


@pytest.mark.parametrize("name", ["bert", "resnet50"])
def test_is_right_without_freezing(name):
    metrics = check(models.Case(name, "small"), options={"freezing": False})
    assert metrics["graphs"] == 1


@pytest.mark.parametrize("name", models.NAMES)
def test_second_input_needs_no_second_graph(name):
    case = models.Case(name, "small")
    model, inputs = case.build(), case.inputs()
    compiled = oxyfuel.compile(model)
    with torch.no_grad():
        compiled(**inputs)
        other = {key: value.flip(0).roll(1, dims=-1) for key, value in inputs.items()}
        verdict = accuracy.compare(compiled(**other), model(**other), accuracy.in_float64(model, other))
    assert verdict.ok, verdict.problems
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 1 and metrics["recompiles"] == 0


@pytest.mark.parametrize("name", ["bert", "t5", "resnet50"])
@pytest.mark.parametrize("grad", [False, True], ids=["", "grad"])
def test_a_backend_of_the_user_gets_the_whole_model(name, grad):
    case = models.Case(name, "small")
    model, inputs = case.build(), case.inputs()
    given = []

    def backend(module, examples):
        given.append(module)
        return module

    compiled = oxyfuel.compile(model, fullgraph=True, backend=backend)
    with torch.set_grad_enabled(grad):
        expected = model(**inputs)
        verdict = accuracy.compare(compiled(**inputs), expected, accuracy.in_float64(model, inputs))
    assert verdict.ok, verdict.problems
    assert len(given) == 1 and oxyfuel.metrics()["breaks"] == []
    assert len(given[0].graph.nodes) > 50


def test_another_batch_size_is_right():
    case = models.Case("bert", "small")
    model = case.build()
    compiled = oxyfuel.compile(model)
    with torch.no_grad():
        for batch in (1, 4, 3):
            inputs = models.Case("bert", "small", batch).inputs()
            verdict = accuracy.compare(compiled(**inputs), model(**inputs), accuracy.in_float64(model, inputs))
            assert verdict.ok, (batch, verdict.problems)


def test_a_module_in_a_dict_and_in_a_closure():
    model = models.Case("resnet50", "small").build()
    inputs = models.Case("resnet50", "small").inputs()["x"]
    holder = {"net": model, "scale": 2.0}

    @oxyfuel.compile(fullgraph=True)
    def from_dict(x):
        return holder["net"](x) * holder["scale"]

    with torch.no_grad():
        expected = model(inputs) * 2.0
        torch.testing.assert_close(from_dict(inputs), expected, rtol=1e-3, atol=1e-4)
        holder["scale"] = 3.0
        torch.testing.assert_close(from_dict(inputs), expected * 1.5, rtol=1e-3, atol=1e-4)


def test_two_threads_call_one_compiled_model():
    import threading

    case = models.Case("bert", "small")
    model = case.build()
    compiled = oxyfuel.compile(model)
    batches = [models.Case("bert", "small", batch).inputs() for batch in (1, 2)]
    with torch.no_grad():
        expected = [model(**inputs).logits for inputs in batches]
    failures = []

    def work(which):
        try:
            with torch.no_grad():  # grad mode belongs to the thread
                for _ in range(20):
                    torch.testing.assert_close(
                        compiled(**batches[which]).logits, expected[which], rtol=1e-3, atol=1e-4
                    )
        except BaseException as error:  # noqa: BLE001: a thread's failure must reach the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_the_rule_itself_can_fail():
    right = torch.tensor([1.0, 2.0])
    assert accuracy.compare(right, right, right.double()).ok
    assert not accuracy.compare(right + 1, right, right.double()).ok
    assert not accuracy.compare(right.double(), right, right.double()).ok
    assert not accuracy.compare((right,), right, right.double()).ok
    assert not accuracy.compare(right.expand(2, 2).t(), right.expand(2, 2), right.double().expand(2, 2)).ok
    assert not accuracy.compare(torch.tensor([float("nan"), 2.0]), right, right.double()).ok


# One of each way in which the models of transformers and timm go about their caches, configurations and outputs.
OF_THE_SWEEP = (
    "BartModel T5Model Gemma4TextModel GPT2Model RwkvModel ViTModel Wav2Vec2Model DetrModel CLIPModel BigBirdModel "
    "FunnelModel PatchTSTModel beit convnext edgenext"
)


def test_models_of_the_sweep_are_whole(tmp_path):
    sweep, results = Path(models.__file__).with_name("sweep") / "sweep.py", tmp_path / "results.jsonl"
    names = "^(" + OF_THE_SWEEP.replace(" ", "|") + ")$"
    command = [sys.executable, str(sweep), "--only", names, "--results", str(results), "--markdown", str(tmp_path / "s.md")]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    outcomes = {record["name"]: record["outcome"] for record in map(json.loads, results.read_text().splitlines())}
    assert len(outcomes) == len(OF_THE_SWEEP.split())
    assert set(outcomes.values()) == {"whole"}, outcomes
