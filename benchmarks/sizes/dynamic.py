#!/usr/bin/env python3
"""What symbolic sizes cost: each model compiled with numbers and with symbols, in a process of its own.

    python benchmarks/sizes/dynamic.py --size small                       all models, inference and training
    python benchmarks/sizes/dynamic.py --models bert gpt2 --modes no_grad
    python benchmarks/sizes/dynamic.py --peer                             torch.compile(dynamic=True) beside, which is slow
    python benchmarks/sizes/dynamic.py --variants                         static variants beside (options={"static_variants": 8})
    python benchmarks/sizes/dynamic.py --call                             what a call of a small BERT with two symbols costs instead

Columns: the time of a call with numbers, and with symbols at the same sizes (the least of many calls in turn) and their ratio; the first
call, which compiles, with an empty cache of kernels; compilations over calls with other batches and lengths; what a call with
sizes that were never seen costs above the next call with them. With --variants: a call that has had its variants made and judged,
what they gain over symbols, and how many graphs kept one and how many dropped one. benchmarks/sizes/dynamic_programs.py and generation.py
tell of programs whose sizes change from call to call.
"""

import argparse
import copy
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NUMBERS, SYMBOLS, PEER, VARIANTS = "numbers", "symbols", "torch.compile", "variants"


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def resized(inputs, batch, length):
    """The inputs with another batch and, of tokens, another length. Both are at most a few times the given ones."""
    import torch

    def other(tensor):
        index = torch.arange(batch) % tensor.size(0)
        tensor = tensor[index]
        if not tensor.is_floating_point() and tensor.dim() == 2:
            tensor = tensor[:, torch.arange(length) % tensor.size(1)]
        return tensor.contiguous()

    return {name: other(tensor) for name, tensor in inputs.items()}


def lengths(inputs):
    tokens = [t for t in inputs.values() if not t.is_floating_point() and t.dim() == 2]
    return tokens[0].size(1) if tokens else 1


def first_call(case, inputs, dynamic):
    """Seconds of the first call of a fresh copy; the caller gives the process an empty cache."""
    import oxyfuel

    model = case.build()
    function = oxyfuel.compile(case.program(model), dynamic=dynamic)
    with case.grad_mode():
        return timed(lambda: case.step(model, function, inputs))[0]


def measure(case, arguments):
    import oxyfuel
    import torch

    if arguments.first:
        return {"first": first_call(case, case.inputs(), arguments.first == SYMBOLS)}
    model, inputs = case.build(), case.inputs()
    result = {"problems": []}
    calls = {}
    with case.grad_mode():
        wanted = (NUMBERS, SYMBOLS) + ((PEER,) if arguments.peer else ()) + ((VARIANTS,) if arguments.variants else ())
        for name in wanted:
            own = copy.deepcopy(model)
            if name == PEER:
                function = torch.compile(case.program(own), dynamic=True)
            else:
                options = {"static_variants": 8} if name == VARIANTS else None
                function = oxyfuel.compile(case.program(own), dynamic=name != NUMBERS, options=options)
            calls[name] = lambda inputs, own=own, function=function: case.step(own, function, inputs)
            seconds, _ = timed(lambda: calls[name](inputs))
            if name == PEER:
                result["peer first"] = seconds
        for call in calls.values():
            call(inputs), call(inputs)
        if arguments.variants:
            judge(lambda: calls[VARIANTS](inputs))
            result["variants"] = oxyfuel.metrics()["static_variants"]
        times = {name: [] for name in calls}
        begin, rounds = time.perf_counter(), 0
        while rounds < 15 or time.perf_counter() - begin < arguments.seconds:
            order = list(calls)
            for name in order[rounds % len(order) :] + order[: rounds % len(order)]:
                times[name].append(timed(lambda: calls[name](inputs))[0])
            rounds += 1
        result["seconds"] = {name: min(values) for name, values in times.items()}

        batch, length = next(iter(inputs.values())).size(0), lengths(inputs)
        before = oxyfuel.metrics()["graphs"]
        others = [(batch + 1, length), (batch, length + 3), (batch + 2, length - 1), (1, length), (batch, 1)]
        for sizes in others:
            given = resized(inputs, *sizes)
            torch.manual_seed(0)
            actual = calls[SYMBOLS](given)
            torch.manual_seed(0)
            expected = case.step(model, case.program(model), given)
            if not case.trains and not close(expected, actual):
                result["problems"].append(f"batch {sizes[0]}, length {sizes[1]}: another answer than eager's")
        result["compilations"] = 1 + oxyfuel.metrics()["graphs"] - before
        extra = []
        for k in range(12):
            given = resized(inputs, batch + 3 + k % 2, length + 4 + k)
            new = timed(lambda: calls[SYMBOLS](given))[0]
            extra.append(new - min(timed(lambda: calls[SYMBOLS](given))[0] for _ in range(3)))
        result["new sizes"] = statistics.median(extra)
    return result


def judge(call):
    """Calls until variants are made, and the trials are over."""
    from oxyfuel import _core

    for _ in range(12):
        call()
    _core.wait_for_background()
    for _ in range(40):
        call()


def close(expected, actual):
    import accuracy
    import torch

    return all(
        torch.allclose(a, b, rtol=1e-3, atol=1e-3)
        for (_, a), (_, b) in zip(accuracy.tensors_of(expected), accuracy.tensors_of(actual))
    )


def worker(case, arguments, first=""):
    """What a process with an empty cache of kernels measures."""
    from dataclasses import asdict

    with tempfile.TemporaryDirectory(prefix="oxyfuel_dynamic_") as folder:
        environment = dict(os.environ, OXYFUEL_CACHE=folder, TORCHINDUCTOR_CACHE_DIR=folder + "/peer")
        command = [sys.executable, __file__, "--worker", json.dumps(asdict(case)), "--seconds", str(arguments.seconds)]
        command += ["--first", first] if first else []
        command += ["--peer"] if arguments.peer and not first else []
        command += ["--variants"] if arguments.variants and not first else []
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    numbers = [line for line in done.stderr.splitlines() if "sizes and numbers are constants" in line]
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "stay numbers": numbers}


def row(case, arguments):
    found = worker(case, arguments)
    if "error" in found:
        return None, f"{case.title} {case.mode}: {found['error']}"
    seconds = found["seconds"]
    ratio = seconds[SYMBOLS] / seconds[NUMBERS]
    cells = [f"{case.model} {case.mode}", f"{seconds[NUMBERS] * 1e3:.2f}", f"{seconds[SYMBOLS] * 1e3:.2f}", f"{ratio:.3f}"]
    first = [float("nan")] * 2
    if not arguments.no_first:
        first = [worker(case, arguments, name).get("first", float("nan")) for name in (NUMBERS, SYMBOLS)]
    cells += [f"{first[0]:.2f}", f"{first[1]:.2f}", f"{first[1] / first[0]:.2f}"]
    cells += [str(found["compilations"]), f"{found['new sizes'] * 1e6:.0f}"]
    if arguments.peer:
        cells += [f"{seconds[PEER] * 1e3:.2f}", f"{seconds[SYMBOLS] / seconds[PEER]:.3f}", f"{found['peer first']:.1f}"]
    if arguments.variants:
        kept, dropped = found["variants"]["kept"], found["variants"]["dropped"]
        cells += [f"{seconds[VARIANTS] * 1e3:.2f}", f"{seconds[SYMBOLS] / seconds[VARIANTS]:.3f}", f"{kept}", f"{dropped}"]
    problems = found["problems"] + found["stay numbers"]
    over_peer = (seconds[SYMBOLS] / seconds[PEER], found["peer first"] / first[1]) if arguments.peer else ()
    return (cells, ratio, first[1] / first[0], *over_peer), "\n".join(f"{case.title} {case.mode}: {problem}" for problem in problems)


def mean(ratios):
    ratios = [r for r in ratios if r == r]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def print_cost_of_call(seconds):
    """A call of a small BERT whose batch and length are symbols, beside one with numbers: the least of many calls in turn."""
    import oxyfuel
    import torch
    from models import Case
    from torch.export import Dim

    print("| BERT, batch x length | numbers, us | symbols, us | above, us |\n|" + "---|" * 4)
    case = Case("bert", "small", 1)
    model = case.build()
    named = {"input_ids": {0: Dim("batch"), 1: Dim("length")}}
    functions = [oxyfuel.compile(model, dynamic=False), oxyfuel.compile(model, dynamic_shapes=named)]
    for batch, length in ((2, 16), (8, 16), (4, 64)):
        inputs = {"input_ids": torch.randint(2, 101, (batch, length))}
        with torch.no_grad():
            for function in functions * 50:
                function(**inputs)
            least, begin, rounds = [math.inf] * 2, time.perf_counter(), 0
            while rounds < 1000 or time.perf_counter() - begin < seconds:
                for k in (0, 1) if rounds % 2 else (1, 0):
                    least[k] = min(least[k], timed(lambda: functions[k](**inputs))[0])
                rounds += 1
        print(f"| {batch} x {length} | {least[0] * 1e6:.1f} | {least[1] * 1e6:.1f} | {(least[1] - least[0]) * 1e6:.1f} |", flush=True)
    found = oxyfuel.metrics()
    print(f"\n{found['graphs']} compilations, {found['calls_eager']} calls in eager, {rounds} rounds at least")


def main():
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from models import NAMES, LANGUAGE_NAMES, Case

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(NAMES), choices=NAMES)
    parser.add_argument("--modes", nargs="*", default=["no_grad", "training"])
    parser.add_argument("--size", default="base", choices=("base", "small"))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0, help="of calls in turn, a model")
    parser.add_argument("--peer", action="store_true", help="torch.compile(dynamic=True) beside")
    parser.add_argument("--variants", action="store_true", help="static variants beside")
    parser.add_argument("--no-first", action="store_true", help="without the times of first calls")
    parser.add_argument("--call", action="store_true", help="what a call of a small BERT with two symbols costs instead")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--first", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(Case(**json.loads(arguments.worker)), arguments)))
        return
    if arguments.call:
        print_cost_of_call(arguments.seconds)
        return
    os.environ["OXYFUEL_LOGS"] = "recompiles"
    titles = ["model", "numbers, ms", "symbols, ms", "ratio", "first, s", "first with symbols, s", "ratio", "compilations", "new sizes, us"]
    titles += ["torch.compile, ms", "symbols over it", "its first, s"] if arguments.peer else []
    titles += ["variants, ms", "symbols over them", "kept", "dropped"] if arguments.variants else []
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles), flush=True)
    rows, notes = [], []
    for mode in arguments.modes:
        for model in arguments.models:
            labels = mode == "training" and model in LANGUAGE_NAMES
            found, note = row(Case(model, arguments.size, arguments.batch, labels, mode), arguments)
            if found:
                rows.append(found)
                print("| " + " | ".join(found[0]) + " |", flush=True)
            if note:
                notes.append(note)
    print(f"\ngeometric means: {mean([r[1] for r in rows]):.3f} of a call, {mean([r[2] for r in rows]):.2f} of a first call")
    if arguments.peer:
        print(f"a call with symbols over torch.compile's: {mean([r[3] for r in rows]):.3f}; ", end="")
        print(f"torch.compile's first call over the first with symbols: {mean([r[4] for r in rows]):.1f}")
    print("\n".join(notes))


if __name__ == "__main__":
    main()
