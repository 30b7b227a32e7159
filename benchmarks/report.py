"""The results of run.py as Markdown tables.

    python benchmarks/report.py bert.json vit.json      # one table of several runs
"""

import json
import sys
from pathlib import Path
from statistics import median

from stats import geometric_mean, ratio_interval

EAGER, OXYFUEL, PEER = "eager", "oxyfuel", "torch.compile"
CAPTURE, PEER_CAPTURE = "oxyfuel capture", "torch.compile capture"
MEBIBYTE = 1 << 20


def title_of(result):
    case = result["case"]
    return f"{case['model']} b{case['batch']}{' labels' if case['labels'] else ''}"


def reasons_for_eager(result):
    """Why oxyfuel ran something in eager; empty if it ran compiled."""
    metrics = result.get("backends", {}).get(OXYFUEL, {}).get("metrics", {})
    breaks = [entry["reason"].splitlines()[0] for entry in metrics.get("breaks", ())]
    return breaks or ["no reason"] if metrics.get("calls_eager") else []


def failed(result):
    """True if the model could not be measured, or oxyfuel's answer is wrong or that of eager."""
    backends = result.get("backends", {})
    accurate = all(backends.get(ours, {}).get("accurate", True) for ours in (OXYFUEL, CAPTURE))
    return "error" in result or not accurate or bool(reasons_for_eager(result))


def compile_seconds(result, backend):
    """First call minus steady call."""
    record = result["backends"][backend]
    return max(record["first_call"] - median(record["seconds"]), 1e-9)


def peak_bytes(result, backend):
    return result.get("memory", {}).get(backend, {}).get("peak_bytes")


def speed_up(result, backend):
    backends = result["backends"]
    return ratio_interval(backends[EAGER]["seconds"], backends[backend]["seconds"])


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def _speed_cell(result, backend):
    if backend not in result["backends"]:
        return ["", ""]
    ratio, low, high = speed_up(result, backend)
    milliseconds = 1000 * median(result["backends"][backend]["seconds"])
    return [f"{milliseconds:.2f}", f"{ratio:.2f} [{low:.2f}, {high:.2f}]"]


def _row(result):
    if "error" in result:
        return [title_of(result), f"failed: {result['error']}"] + [""] * 9
    eager_ms = 1000 * median(result["backends"][EAGER]["seconds"])
    row = [title_of(result), f"{eager_ms:.2f}"]
    for backend in (OXYFUEL, PEER):
        row += _speed_cell(result, backend)
    for backend in (OXYFUEL, PEER):
        row.append(f"{compile_seconds(result, backend):.2f}" if backend in result["backends"] else "")
    for backend in (OXYFUEL, PEER):
        ours, eager = peak_bytes(result, backend), peak_bytes(result, EAGER)
        row.append(f"{ours / MEBIBYTE:.0f} ({ours / eager:.2f}x)" if ours and eager else "")
    judged = [r["accurate"] for name, r in result["backends"].items() if name != EAGER and "accurate" in r]
    problems = [p for r in result["backends"].values() for p in r.get("problems", ())]
    problems += [f"in eager: {reason}" for reason in reasons_for_eager(result)]
    row.append("yes" if all(judged) and not problems else "NO: " + "; ".join(problems))
    return row


def _summary(results):
    done = [r for r in results if "error" not in r]
    lines = []
    for backend in (OXYFUEL, PEER):
        have = [r for r in done if backend in r["backends"]]
        if have:
            mean = geometric_mean(speed_up(r, backend)[0] for r in have)
            lines.append(f"{backend}: steady speed-up over eager, geometric mean {mean:.2f}x")
    both = [r for r in done if {OXYFUEL, PEER} <= set(r["backends"])]
    if both:
        mean = geometric_mean(compile_seconds(r, PEER) / compile_seconds(r, OXYFUEL) for r in both)
        lines.append(f"first call minus steady call, torch.compile ÷ oxyfuel, geometric mean {mean:.1f}x")
    return "\n".join(f"- {line}" for line in lines) + "\n"


def markdown(results):
    head = ["model", "eager ms", "oxyfuel ms", "speed-up", "torch.compile ms", "speed-up"]
    head += ["oxyfuel first call s", "torch.compile first call s", "oxyfuel peak MiB", "torch.compile peak MiB", "accurate"]
    return _table(head, [_row(result) for result in results]) + "\n" + _summary(results)


def capture_markdown(results):
    """What running the captured operators one by one costs over eager, as a factor."""
    head = ["model", "eager ms"]
    for backend in (CAPTURE, PEER_CAPTURE):
        head += [f"{backend} ms", "of eager's time"]
    rows, factors = [], {}
    for result in results:
        if "error" in result:
            rows.append([title_of(result), f"failed: {result['error']}"] + [""] * 4)
            continue
        backends = result["backends"]
        row = [title_of(result), f"{1000 * median(backends[EAGER]['seconds']):.2f}"]
        for backend in (CAPTURE, PEER_CAPTURE):
            if backend not in backends:
                row += ["", ""]
                continue
            seconds = backends[backend]["seconds"]
            factor, low, high = ratio_interval(seconds, backends[EAGER]["seconds"])
            factors.setdefault(backend, []).append(factor)
            row += [f"{1000 * median(seconds):.2f}", f"{factor:.3f} [{low:.3f}, {high:.3f}]"]
        rows.append(row)
    means = [f"- {name}: of eager's time, geometric mean {geometric_mean(all_):.3f}" for name, all_ in factors.items()]
    return _table(head, rows) + "\n" + "\n".join(means) + "\n"


if __name__ == "__main__":
    print(markdown([result for path in sys.argv[1:] for result in json.loads(Path(path).read_text())]), end="")
