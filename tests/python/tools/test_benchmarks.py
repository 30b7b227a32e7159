"""What the benchmarks compute from their measurements."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import report
import stats

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def test_the_interval_holds_the_ratio():
    ratio, low, high = stats.ratio_interval([2.0, 2.2, 1.8, 2.1, 1.9], [1.0, 1.1, 0.9, 1.0, 1.0])
    assert ratio == pytest.approx(2.0)
    assert low <= ratio <= high
    assert 1.6 < low and high < 2.5


def test_a_noisy_measurement_has_a_wide_interval():
    _, low, high = stats.ratio_interval([1.0, 5.0, 2.0, 4.0], [1.0, 1.0, 1.0, 1.0])
    assert high - low > 1


def test_unequal_rounds_are_an_error():
    with pytest.raises(ValueError, match="as many"):
        stats.ratio_interval([1.0], [])


def test_the_geometric_mean():
    assert stats.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def record(first_call, seconds, accurate=True):
    return {"first_call": first_call, "seconds": seconds, "accurate": accurate, "problems": []}


def test_the_table_has_every_model_and_a_summary():
    case = {"model": "bert", "batch": 1, "labels": False}
    result = {
        "case": case,
        "backends": {
            "eager": record(0.2, [0.2, 0.2]),
            "oxyfuel": record(1.1, [0.1, 0.1]),
            "torch.compile": record(20.1, [0.1, 0.1]),
        },
        "memory": {
            "eager": {"peak_bytes": 100 << 20},
            "oxyfuel": {"peak_bytes": 110 << 20},
            "torch.compile": {"peak_bytes": 100 << 20},
        },
    }
    text = report.markdown([result, {"case": {**case, "batch": 4}, "error": "took longer than 3 s"}])
    assert "| bert b1 | 200.00 | 100.00 | 2.00 [2.00, 2.00] |" in text
    assert "110 (1.10x)" in text
    assert "failed: took longer than 3 s" in text
    assert "geometric mean 20.0x" in text
    assert report.failed({"error": "x"}) and not report.failed(result)
    left = {"calls_eager": 1, "breaks": [{"reason": "a kernel does not compile:\nline 1"}]}
    slow = {**result, "backends": {**result["backends"], "oxyfuel": {**record(1.1, [0.1, 0.1]), "metrics": left}}}
    assert report.failed(slow) and "NO: in eager: a kernel does not compile:" in report.markdown([slow])
    result["backends"]["oxyfuel"]["accurate"] = False
    assert report.failed(result)


def test_the_sweep_judges_models_and_resumes(tmp_path):
    if not all(map(importlib.util.find_spec, ("transformers", "timm"))):
        pytest.skip("transformers or timm is not installed")
    results, table = tmp_path / "sweep.jsonl", tmp_path / "sweep.md"
    command = [sys.executable, str(BENCHMARKS / "sweep" / "sweep.py"), "--results", str(results), "--markdown", str(table)]
    command += ["--only", "^(BertModel|DinatModel|resnet)$"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {result["name"]: result for result in map(json.loads, results.read_text().splitlines())}
    assert {name: found[name]["outcome"] for name in ("BertModel", "resnet")} == {"BertModel": "whole", "resnet": "whole"}
    assert found["BertModel"]["operators"] > 20 and found["BertModel"]["float64"]
    assert "| BertModel | whole | right |" in table.read_text()
    assert len(results.read_text().splitlines()) == 3
    subprocess.run(command, check=True, capture_output=True)
    assert len(results.read_text().splitlines()) == 3  # nothing ran again


def test_the_sweep_calls_models_with_three_sizes(tmp_path):
    if not all(map(importlib.util.find_spec, ("transformers", "timm"))):
        pytest.skip("transformers or timm is not installed")
    results, table = tmp_path / "sizes.jsonl", tmp_path / "sizes.md"
    command = [sys.executable, str(BENCHMARKS / "sweep" / "sweep.py"), "--sizes", "--results", str(results), "--markdown", str(table)]
    done = subprocess.run([*command, "--only", "^(BertModel|ViTModel|resnet)$"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {result["name"]: result for result in map(json.loads, results.read_text().splitlines())}
    assert {name: result["outcome"] for name, result in found.items()} == dict.fromkeys(("BertModel", "ViTModel", "resnet"), "whole")
    varying = {name: result["varying"] for name, result in found.items()}
    assert varying == {"BertModel": "batch and length", "ViTModel": "batch", "resnet": "all"}
    assert [size["input_ids"] for size in found["BertModel"]["inputs"]] == [[2, 16], [3, 24], [5, 40]]
    assert found["BertModel"]["compilations"] == 2 and found["BertModel"]["symbols"]
    assert "3 models with three sizes, 100.0 % whole with symbols" in table.read_text()


def test_the_sweep_with_sizes_reports_what_is_not_as_it_should_be():
    report = importlib.import_module("sweep_report")
    common = {"library": "timm", "order": "together", "varying": "all", "deterministic": True}
    results = [
        {**common, "name": "good", "model": "good", "outcome": "whole", "compilations": 2},
        {**common, "name": "again", "model": "again_1", "outcome": "whole", "compilations": 3, "recompile_reasons": ["f: x was 2, is 3"]},
        {**common, "name": "fixed", "model": "fixed_1", "outcome": "numbers", "compilations": 3, "why_numbers": ["u3 is not known"]},
        {"library": "timm", "name": "slow", "model": "slow", "outcome": "timed out", "reason": "took longer than 1 s"},
        {"library": "timm", "name": "none", "model": "none", "outcome": "not built", "reason": "no such thing"},
    ]
    assert "4 models with three sizes, 50.0 % whole with symbols" in report.sizes_summary(results)
    text = report.sizes_markdown(results, 5)
    assert "| good |" not in text and "1 models are as they should be" in text
    assert "| again_1 | all | whole, symbols | right | 3 | x was 2, is 3 |" in text
    assert "| fixed_1 | all | whole, numbers | right | 3 | numbers: u is not known |" in text and "| u is not known | 1 |" in text
    assert "| slow |  |  | timed out |  | took longer than 1 s |" in text


def test_programs_of_sizes_are_judged():
    if not all(map(importlib.util.find_spec, ("transformers", "timm"))):
        pytest.skip("transformers or timm is not installed")
    command = [sys.executable, str(BENCHMARKS / "sizes" / "dynamic_programs.py"), "--programs", "mlp", "boxes", "--seconds", "0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if line.startswith("| b")]
    assert [row[2] for row in rows] == ["2", "1", "1", "1"] and all(row[-1] == "yes" for row in rows)


def test_programs_of_sizes_name_what_is_wrong():
    programs = importlib.import_module("dynamic_programs")
    good = {"graphs": 2, "later": 0, "breaks": [], "in eager": 0, "reasons": [], "right": True, "warnings": []}
    assert programs.faults("an MLP", "ours", good, 2) == []
    for change, text in (
        ({"later": 1, "reasons": ["x was 2, is 3"]}, "3 compilations; x was 2, is 3"),
        ({"right": False}, "other results than eager's"),
        ({"in eager": 4}, "4 calls in eager"),
        ({"breaks": ["break: print"]}, "break: print"),
    ):
        assert programs.faults("an MLP", "ours", {**good, **change}, 2) == ["an MLP, ours: " + text]


@pytest.mark.parametrize("added, is_right", [(0.0, True), (1e-4, False)])
def test_errors_are_judged_over_variations(added, is_right, monkeypatch):
    if not all(map(importlib.util.find_spec, ("transformers", "timm"))):
        pytest.skip("transformers or timm is not installed")
    import accuracy
    import sweep_check
    import torch

    import oxyfuel

    compile = oxyfuel.compile
    monkeypatch.setattr(oxyfuel, "compile", lambda model: lambda input: compile(model)(input) + added)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(16, 16), torch.nn.Tanh()] * 3)
    ratio = sweep_check.error_ratio(model, {"input": torch.randn(8, 16)})
    assert (ratio <= accuracy.ERROR_FACTOR) == is_right


def test_the_sweep_survives_what_a_model_does(tmp_path):
    code = f"""
import sys, os, time, signal
sys.path[:0] = [{str(BENCHMARKS / "sweep")!r}, {str(BENCHMARKS)!r}]
import sweep, sweep_check

def examine(library, name):
    if name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "hang":
        time.sleep(100)
    if name == "error":
        raise ValueError("no such thing")
    return {{"library": library, "name": name, "model": name, "outcome": "whole"}}

sweep_check.examine = examine
sweep.wanted = lambda arguments: [("timm", name) for name in ("crash", "hang", "error", "fine")]
sys.exit(sweep.main(["--results", {str(tmp_path / "r.jsonl")!r}, "--timeout", "1", "--workers", "2"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    found = {result["name"]: result for result in map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())}
    assert found["crash"]["outcome"] == "crashed" and found["crash"]["reason"] == "SIGSEGV"
    assert found["hang"]["outcome"] == "timed out"
    assert found["error"]["outcome"] == "not built" and "no such thing" in found["error"]["reason"]
    assert found["fine"]["outcome"] == "whole"
