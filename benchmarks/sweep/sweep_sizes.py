"""Judges one model of the sweep at three sizes, one compiled model for all of them. Used by sweep.py --sizes."""

import copy
import math
import time
import traceback
import warnings

import accuracy
import sweep_timm
import sweep_transformers
import torch
from sweep_check import build, call, call_as_compiled, capture_outcome, copied, error_ratio, exact_answer, problems_of, same

BATCHES = (2, 3, 5)
TOKENS = (16, 24, 40)
STEPS = (0, 1, 2)  # of the sizes of images and the lengths of sounds
# What varies, the most first: a model takes the first that runs in eager.
VARYING = {
    "all": (BATCHES, TOKENS, STEPS),
    "batch and length": (BATCHES, TOKENS, (0, 0, 0)),
    "batch": (BATCHES, (16, 16, 16), (0, 0, 0)),
    "length": ((2, 2, 2), TOKENS, STEPS),
}
ROUNDS = 2  # calls with each size


class OneSize(Exception):
    """The model takes no other size in eager."""


def resized(library, model, arguments, batch, tokens, step):
    if library == "timm":
        return sweep_timm.resized(model, arguments, batch, step)
    return sweep_transformers.resized(model, arguments, batch, tokens, step)


def _shapes(arguments):
    return {name: list(value.shape) for name, value in arguments.items()}


def _brief(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:160]}"


def sizes_of(library, model, arguments, order):
    """(what varies, arguments of each size): those that the model takes in eager."""
    first, tried, possible = None, [], {}
    for what, (batches, tokens, steps) in VARYING.items():
        if order == "batch-first":
            tokens, steps = tokens[:1] + tokens[:2], steps[:1] + steps[:2]
        try:
            others = [resized(library, model, arguments, *sizes) for sizes in zip(batches[1:], tokens[1:], steps[1:])]
            possible[what] = [arguments, *others]
        except Exception as error:
            first = first or _brief(error)
    # Of names for the same sizes the one that says less.
    shapes = {what: [_shapes(own) for own in sizes] for what, sizes in possible.items()}
    for what, own_shapes in shapes.items():
        if own_shapes in tried or own_shapes[0] == own_shapes[1] == own_shapes[2]:
            continue
        tried.append(own_shapes)
        try:
            probe = copy.deepcopy(model)
            for own in possible[what][1:]:
                call(probe, own)
            return [name for name in shapes if shapes[name] == own_shapes][-1], possible[what]
        except Exception as error:
            first = first or _brief(error)
    raise OneSize(first or "no argument has a size that is known to vary")


def _wrong(model, sizes, rounds, answers):
    """The problems of all answers, and what is known of their errors. An answer within the tolerance of eager's is
    right; the others are judged by the float64 model, as in the sweep with one size."""
    known = {"stateful": not all(same(a, b) for a, b in zip(*rounds))}
    named = [(f"size {i} round {r}", answers[r][i], rounds[r][i]) for i in range(len(sizes)) for r in range(ROUNDS)]
    problems = problems_of(named, None)
    if not problems or known["stateful"]:
        return problems, known
    problems = []
    for index, arguments in enumerate(sizes):
        own = [entry for entry in named if entry[0].startswith(f"size {index} ")]
        found = problems_of(own, None) and problems_of(own, exact_answer(copy.deepcopy(model), arguments, rounds[0][index])[0])
        if not found:
            continue
        as_compiled = call_as_compiled(model, arguments)
        if not same(rounds[0][index], as_compiled):
            known["asks_whether_it_is_compiled"] = True
            found = problems_of([(name, actual, as_compiled) for name, actual, _ in own], None)
        else:
            known["error_ratio"] = error_ratio(model, arguments, dynamic=True)
            found = [] if (known["error_ratio"] or math.inf) <= accuracy.ERROR_FACTOR else found
        problems += found
    return problems, known


def examine(library, name, order="together"):
    """As sweep_check.examine(); "one size": there is nothing to vary. A model is "numbers" if it is whole and no graph for
    the last size has symbols."""
    import oxyfuel

    result = {"library": library, "name": name, "model": name, "order": order}
    start = time.perf_counter()
    try:
        model, arguments, result["model"] = build(library, name)
        result["varying"], sizes = sizes_of(library, model, arguments, order)
    except sweep_transformers.NotBuilt as error:
        return {**result, "outcome": "not built", "reason": str(error)}
    except OneSize as error:
        return {**result, "outcome": "one size", "reason": str(error)}
    result["inputs"] = [_shapes(own) for own in sizes]
    fresh = copy.deepcopy(model)
    rounds = [[call(model, own)[0] for own in sizes] for _ in range(ROUNDS)]
    deterministic = same(rounds[0][0], call(copy.deepcopy(fresh), arguments)[0])
    result["build_seconds"] = time.perf_counter() - start
    oxyfuel.reset()
    answers, compiling, segments = [[] for _ in range(ROUNDS)], 0, []
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pristine = copy.deepcopy(fresh)
        compiled = oxyfuel.compile(fresh)
        try:
            for own_answers in answers:
                for own in sizes:
                    graphs = oxyfuel.metrics()["graphs"]
                    own_answers.append(call(compiled, own)[0])
                    compiling += oxyfuel.metrics()["graphs"] > graphs
            metrics = oxyfuel.metrics()
            with torch.no_grad():
                segments = oxyfuel.explain(compiled)(**copied(sizes[-1])).segments
        except Exception as error:
            lines = traceback.format_exc().strip().splitlines()
            return {**result, "outcome": "raised", "reason": f"{type(error).__name__}: {error}"[:600], "traceback": lines[-30:]}
    outcome = capture_outcome(metrics)
    symbolic = [segment for segment in segments if segment["operators"] and segment["symbols"]]
    result.update(
        compiled_seconds=time.perf_counter() - start,
        graphs=metrics["graphs"],
        compilations=metrics["graphs"] if outcome == "whole" else compiling,
        recompile_reasons=metrics["recompile_reasons"][:6],
        calls_eager=metrics["calls_eager"],
        symbols=sorted({f"{symbol['source']}" for segment in symbolic for symbol in segment["symbols"]})[:8],
        shape_fallbacks=metrics["shape_fallback_names"],
        breaks=[{key: record[key] for key in ("reason", "stack", "count")} for record in metrics["breaks"]],
        deterministic=deterministic,
        outcome="numbers" if outcome == "whole" and not symbolic else outcome,
    )
    problems, known = _wrong(pristine, sizes, rounds, answers)
    result.update(known)
    if problems and deterministic:
        result.update(outcome="wrong", capture=result["outcome"], problems=problems[:20])
    return result
