"""The results of sweep.py in words and as the Markdown of docs/sweep.md."""

from collections import Counter

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
        "`benchmarks/sweep.py` writes this: every base model of transformers that a configuration of its own, made small,",
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
