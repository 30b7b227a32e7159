"""Judges one model of the sweep: eager, float64 and compiled, in this process. Used by sweep.py."""

import copy
import math
import time
import traceback
import warnings
from unittest import mock

import accuracy
import sweep_timm
import sweep_transformers
import torch

SEED = 3
VARIATIONS = 6
VARIATION = 1e-3  # of a weight, relative to it


def copied(arguments):
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in arguments.items()}


def call(function, arguments):
    """The output with the random numbers of SEED, and whether any were drawn."""
    torch.manual_seed(SEED)
    before = torch.get_rng_state()
    with torch.no_grad():
        output = function(**copied(arguments))
    return output, not torch.equal(before, torch.get_rng_state())


def same(first, second):
    pairs = zip(accuracy.tensors_of(first), accuracy.tensors_of(second))
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for (_, a), (_, b) in pairs)


def exact_answer(model, arguments, eager):
    """The float64 model's output, or eager's own where it has none of the same shapes."""
    try:
        wide_model, wide_arguments = accuracy.widened(model, arguments)
        if hasattr(wide_model, "set_experts_implementation"):
            wide_model.set_experts_implementation("eager")  # grouped products know no float64
        exact, draws = call(wide_model, wide_arguments)
        shapes = [[(path, tensor.shape) for path, tensor in accuracy.tensors_of(output)] for output in (exact, eager)]
        if shapes[0] == shapes[1] and not draws:
            return exact, True
    except Exception:  # a model that names float32 somewhere
        pass
    return eager, False


def call_as_compiled(model, arguments):
    """What eager gives where the model is told that it is being compiled: some branch on that."""
    with mock.patch("torch.compiler.is_compiling", lambda: True), mock.patch("torch._dynamo.is_compiling", lambda: True):
        return call(model, arguments)[0]


def problems_of(calls, reference):
    """`calls`: (name, actual, expected) of each."""
    return [
        f"{name} call: {problem}"
        for name, actual, expected in calls
        for problem in accuracy.compare(actual, expected, expected if reference is None else reference).problems
    ]


def varied(model, seed):
    """A copy with weights that are a little different, so that rounding goes other ways."""
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            if parameter.is_floating_point():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.mul_(1 + VARIATION * noise.to(parameter.dtype))
    return other


def error_ratio(model, arguments, **options):
    """The errors of compiled answers over those of eager's: the geometric mean over variations of the weights. Where
    rounding errors grow from layer to layer one answer is chance. None without a float64 answer, or if something else
    than the size of an error differs."""
    import oxyfuel

    ratios = []
    for seed in range(VARIATIONS):
        variation = varied(model, seed)
        eager, _ = call(variation, arguments)
        reference, is_exact = exact_answer(variation, arguments, eager)
        verdict = accuracy.compare(call(oxyfuel.compile(variation, **options), arguments)[0], eager, reference)
        if not is_exact or not verdict.error or not verdict.eager_error or len(verdict.problems) > verdict.inexact:
            return None
        ratios.append(verdict.error / verdict.eager_error)
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def build(library, name):
    """(model, arguments, title)."""
    if library == "timm":
        return sweep_timm.build(name)
    return (*sweep_transformers.build(name), name)


def capture_outcome(metrics):
    if metrics["graphs"] == 0:
        return "eager"
    return "broken" if metrics["breaks"] else "whole"


def examine(library, name):
    """What became of the model, as a dict that JSON can hold: `outcome` is "not built", "raised", "wrong", "whole",
    "broken" or "eager"."""
    import oxyfuel

    result = {"library": library, "name": name, "model": name}
    start = time.perf_counter()
    try:
        model, arguments, result["model"] = build(library, name)
    except sweep_transformers.NotBuilt as error:
        return {**result, "outcome": "not built", "reason": str(error)}
    result["inputs"] = {key: list(getattr(value, "shape", [])) for key, value in arguments.items()}
    result["parameters"] = sum(p.numel() for p in model.parameters())
    fresh = copy.deepcopy(model)
    eager, result["random"] = call(model, arguments)
    # Its second call: a model that keeps state gives another answer then.
    second_eager, _ = call(model, arguments)
    deterministic = same(eager, call(copy.deepcopy(fresh), arguments)[0])
    reference, result["float64"] = exact_answer(fresh, arguments, eager)
    result["build_seconds"] = time.perf_counter() - start
    oxyfuel.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = oxyfuel.compile(fresh)
        try:
            start = time.perf_counter()
            first, _ = call(compiled, arguments)
            result["first_seconds"] = time.perf_counter() - start
            start = time.perf_counter()
            second, _ = call(compiled, arguments)
            result["second_seconds"] = time.perf_counter() - start
        except Exception as error:
            lines = traceback.format_exc().strip().splitlines()
            return {**result, "outcome": "raised", "reason": f"{type(error).__name__}: {error}"[:600], "traceback": lines[-30:]}
    stateful = not same(eager, second_eager)
    calls = [("first", first, eager), ("second", second, second_eager)]
    problems = problems_of(calls, None if stateful else reference)
    metrics = oxyfuel.metrics()
    result.update(
        graphs=metrics["graphs"],
        operators=metrics["operators"],
        recompiles=metrics["recompiles"],
        recompile_reasons=metrics["recompile_reasons"][:3],
        calls_eager=metrics["calls_eager"],
        shape_fallbacks=metrics["shape_fallback_names"],
        breaks=[{key: record[key] for key in ("reason", "stack", "count")} for record in metrics["breaks"]],
        deterministic=deterministic,
        stateful=stateful,
    )
    result["outcome"] = capture_outcome(metrics)
    if problems and deterministic and not stateful:
        as_compiled = call_as_compiled(model, arguments)
        result["asks_whether_it_is_compiled"] = not same(eager, as_compiled)
        if result["asks_whether_it_is_compiled"]:
            problems = problems_of([(name, actual, as_compiled) for name, actual, _ in calls], None)
        else:
            result["error_ratio"] = error_ratio(model, arguments)
            problems = [] if (result["error_ratio"] or math.inf) <= accuracy.ERROR_FACTOR else problems
    if problems and deterministic:
        result.update(outcome="wrong", capture=result["outcome"], problems=problems[:20])
    return result
