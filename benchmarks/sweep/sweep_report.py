"""The results of sweep.py in words and as the Markdown of docs/sweep.md and docs/sweep-sizes.md."""

import re
from collections import Counter
from statistics import median

CAPTURED = ("whole", "broken", "eager")
FAILURES = ("wrong", "raised", "crashed", "timed out")
MOST_REASONS = 40


def failed(result):
    """True if the compiler is at fault: a wrong answer, an error, a crash, an endless loop."""
    return result["outcome"] in FAILURES or "internal_error" in result


def _built(results):
    return [result for result in results if result["outcome"] != "not built"]


def break_reasons(results):
    """(reason, number of models) of the breaks and shape-rule fall-backs, the most frequent first."""
    counts = Counter()
    for result in results:
        counts.update({record["reason"] for record in result.get("breaks", ())})
        counts.update({f"no shape rule (no break): {name}" for name in result.get("shape_fallbacks", ())})
    return counts.most_common()


def figures(results):
    """Outcome -> number of models."""
    counts = Counter(result["outcome"] for result in results)
    return {outcome: counts[outcome] for outcome in (*CAPTURED, *FAILURES, "not built")}


def summary(results):
    """One line a library."""
    lines = []
    for library in sorted({result["library"] for result in results}):
        own = [result for result in results if result["library"] == library]
        counts, built = figures(own), len(_built(own))
        share = f"{100 * counts['whole'] / built:.1f} % whole" if built else "none built"
        lines.append(f"{library}: {built} models built, {share}; " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    return "\n".join(lines)


def _cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def _row(result):
    outcome = result["outcome"]
    captured = result.get("capture", outcome)
    if captured == "broken":
        captured = f"{result['graphs']} graphs, {len(result['breaks'])} breaks"
    answer = "right" if outcome in CAPTURED else outcome
    notes = [*result.get("problems", ())[:2], *([result["reason"]] if "reason" in result else [])]
    notes += sorted({record["reason"] for record in result.get("breaks", ())})[:3]
    if result.get("asks_whether_it_is_compiled"):
        notes.append("answers otherwise where torch.compiler.is_compiling(), in eager as well")
    if result.get("error_ratio"):
        notes.append(f"over variations of the weights, errors are {result['error_ratio']:.2f} of eager's")
    if result.get("internal_error"):
        notes.append(result["internal_error"])
    if outcome in CAPTURED and not result["deterministic"]:
        answer = "eager differs from itself"
    name = result["model"] if result["library"] == "timm" else result["name"]
    seconds = f"{result['first_seconds']:.2f}" if "first_seconds" in result else ""
    return [name, captured if captured in CAPTURED or "graphs" in captured else "", answer, seconds, "; ".join(notes)[:300]]


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]) + "\n"


def markdown(results, asked):
    results = sorted(results, key=lambda result: (result["library"], result["name"].lower()))
    lines = [
        "# The sweep",
        "",
        "`benchmarks/sweep/sweep.py` writes this: every base model of transformers that a configuration of its own, made small,",
        "builds, and the smallest model of every timm family; random weights, float32, no_grad. *whole*: one graph, no",
        "break; *eager*: no graph. An answer is right by the rule of `benchmarks/accuracy.py`, on the first call and the",
        "second, or on the average of several variations of the weights where that of one is chance. Seconds are those of",
        "the first compiled call.",
        "",
        f"{len(results)} of {asked} models were run.",
        "",
        *(f"- {line}" for line in summary(results).splitlines()),
        "",
    ]
    reasons = break_reasons(results)[:MOST_REASONS]
    text = "\n".join(lines)
    if reasons:
        text += "\n## Reasons of breaks, and operators without a shape rule\n\n" + _table(["reason", "models"], reasons)
    for library in sorted({result["library"] for result in results}):
        own = [result for result in _built(results) if result["library"] == library]
        text += f"\n## {library}\n\n" + _table(["model", "captured", "answer", "first call s", "notes"], map(_row, own))
    missing = [result for result in results if result["outcome"] == "not built"]
    if missing:
        text += "\n## Not built\n\n" + _table(["model", "reason"], [[r["name"], r["reason"]] for r in missing])
    return text


MOST_BREAKS = 20
MOST_COMPILATIONS = 2  # with three sizes: one with numbers, one with symbols


def _varied(results):
    return [result for result in results if result["outcome"] not in ("not built", "one size")]


def _as_it_should(result):
    return result["outcome"] == "whole" and result["compilations"] <= MOST_COMPILATIONS and not failed(result)


def sizes_summary(results):
    """Of each library and of all: the shares and the compilations."""
    lines = []
    for library in (*sorted({result["library"] for result in results}), "all"):
        own = [result for result in results if library in ("all", result["library"])]
        varied, counts = _varied(own), Counter(result["outcome"] for result in own)
        if not varied:
            continue
        compilations = [result["compilations"] for result in varied if "compilations" in result]
        spread = ", ".join(f"{number}: {models}" for number, models in sorted(Counter(compilations).items()))
        lines.append(
            f"{library}: {len(varied)} models with three sizes, {100 * counts['whole'] / len(varied):.1f} % whole with symbols; "
            + ", ".join(f"{counts[what]} {what}" for what in ("whole", "numbers", "broken", "eager", *FAILURES))
            + f"; compilations: median {median(compilations or [0]):g} ({spread}); {counts['one size']} take one size only, "
            f"{counts['not built']} not built"
        )
    return "\n".join(lines)


def _reasons_of_breaks(result):
    """Each once: numbers of data count as one another."""
    return sorted({re.sub(r"\bu\d+\b", "u", record["reason"]) for record in result.get("breaks", ())})


def _why_numbers(result):
    return [re.sub(r" \(torch\._check.*", "", re.sub(r"\bu\d+\b", "u", reason)) for reason in result.get("why_numbers", ())]


def _sizes_row(result):
    captured = result.get("capture", result["outcome"])
    captured = {"whole": "whole, symbols", "numbers": "whole, numbers"}.get(captured, captured)
    notes = [*result.get("problems", ())[:2], *([result["reason"]] if "reason" in result else [])]
    notes += [f"numbers: {reason}" for reason in _why_numbers(result)[:1]]
    notes += _reasons_of_breaks(result)[:2]
    if not notes or captured == "whole, symbols":
        notes += [reason.split(": ", 1)[-1] for reason in result.get("recompile_reasons", ())[:3]]
    if result.get("internal_error"):
        notes.append(result["internal_error"])
    answer = "right" if result["outcome"] in (*CAPTURED, "numbers") else result["outcome"]
    if answer == "right" and not result["deterministic"]:
        answer = "eager differs from itself"
    name = result["model"] if result["library"] == "timm" else result["name"]
    return [name, result.get("varying", ""), captured if captured not in FAILURES else "", answer, result.get("compilations", ""), "; ".join(notes)[:200]]


def sizes_markdown(results, asked):
    results = sorted(results, key=lambda result: (result["library"], result["name"].lower()))
    varied = _varied(results)
    what = Counter(result.get("varying") for result in varied)
    counted = ", ".join(f"{what[name]} {name}" for name in ("all", "batch and length", "batch", "length") if what[name])
    orders = sorted({result["order"] for result in varied if "order" in result})
    lines = [
        "# The sweep with three sizes",
        "",
        f"`benchmarks/sweep/sweep.py --sizes {' '.join(orders)}` writes this: the models of [sweep.md](sweep.md), each compiled once with",
        "`dynamic=None` and called with three sizes, twice each: batches of 2, 3 and 5, sequences of 16, 24 and 40 tokens,",
        "images and sounds of three sizes. What a model refuses in eager is not varied (first the images, then all lengths, at",
        "last the batch). *whole, symbols*: one graph at each call, no break, and the graph of the last size has symbols.",
        "*Compilations*: graphs of a whole model; of others the calls of the six that compiled something. An answer is right if",
        "it is within 1e-3 of eager's, or by the rule of [sweep.md](sweep.md). What is not listed is whole, with symbols, right,",
        f"and compiled at most {MOST_COMPILATIONS} times.",
        "",
        f"{len(results)} of {asked} models were run (those not run are not in any figure). What varies: {counted}.",
        "",
        *(f"- {line}" for line in sizes_summary(results).splitlines()),
        "",
    ]
    text = "\n".join(lines)
    numbers = Counter(reason for result in varied if result["outcome"] == "numbers" for reason in set(_why_numbers(result))).most_common(MOST_REASONS)
    if numbers:
        text += "\n## Why sizes are numbers\n\n" + _table(["reason", "models"], numbers)
    breaks = Counter(reason for result in varied for reason in _reasons_of_breaks(result))
    if breaks:
        text += "\n## Breaks\n\n" + _table(["reason", "models"], breaks.most_common(MOST_BREAKS))
    for library in sorted({result["library"] for result in varied}):
        own = [result for result in varied if result["library"] == library]
        listed = [result for result in own if not _as_it_should(result)]
        text += f"\n## {library}\n\n{len(own) - len(listed)} models are as they should be.\n"
        if listed:
            head = ["model", "varies", "captured", "answer", "compilations", "notes"]
            text += "\n" + _table(head, map(_sizes_row, listed))
    fixed = [result for result in results if result["outcome"] == "one size"]
    if fixed:
        text += "\n## One size only\n\n" + _table(["model", "what eager says of another"], [[r["name"], r["reason"]] for r in fixed])
    return text
