"""What the benchmarks compute from their measurements."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import report  # noqa: E402
import stats  # noqa: E402


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
    result["backends"]["oxyfuel"]["accurate"] = False
    assert report.failed(result)
