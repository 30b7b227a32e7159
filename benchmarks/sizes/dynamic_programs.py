#!/usr/bin/env python3
"""What programs cost whose sizes change from call to call: compilations, seconds of compiling, and time of steady calls.

    python benchmarks/sizes/dynamic_programs.py                     oxyfuel.compile with dynamic=None and dynamic=True
    python benchmarks/sizes/dynamic_programs.py --peer              torch.compile beside, which is slow
    python benchmarks/sizes/dynamic_programs.py --programs mlp bert
    python benchmarks/sizes/dynamic_programs.py --list

benchmarks/sizes/programs_of_sizes.py has the programs. Each program and way of compiling has a process of its own. Columns: graphs that were
compiled; breaks and calls in eager, where there are any; the seconds of all first calls minus those of steady ones, which are the
least of several calls with the same arguments; the same in seconds of processors, which other programs disturb less; what steady
calls of all sizes take together, over eager's, which take turns; whether all results are eager's.
"""

import argparse
import copy
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = {"ours": None, "ours, dynamic=True": True, "torch.compile": None, "torch.compile, dynamic=True": True}
OURS = tuple(name for name in WAYS if name.startswith("ours"))


def processor_seconds():
    """Of this process and of compilers that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(call):
    """Seconds, seconds of processors, and the result."""
    start, used = time.perf_counter(), processor_seconds()
    result = call()
    return time.perf_counter() - start, processor_seconds() - used, result


def compiled(model, way):
    """What a user calls in the place of the model."""
    import oxyfuel
    import torch

    if way in OURS:
        return oxyfuel.compile(model, dynamic=WAYS[way])
    if hasattr(model, "generate"):  # OptimizedModule's generate() calls the model that is not compiled
        model.forward = torch.compile(model.forward, dynamic=WAYS[way])
        return model
    return torch.compile(model, dynamic=WAYS[way])


def compilations(way):
    """Graphs compiled so far, and what was not."""
    import oxyfuel
    import torch

    if way in OURS:
        found = oxyfuel.metrics()
        return found["graphs"], [f"break: {b['reason']}" for b in found["breaks"]], found["calls_eager"], found["recompile_reasons"]
    counters = torch._dynamo.utils.counters
    return counters["stats"]["unique_graphs"], [f"break: {text}" for text in counters["graph_break"]], 0, []


def close(expected, actual):
    import accuracy
    import torch

    pairs = list(zip(accuracy.tensors_of(expected), accuracy.tensors_of(actual), strict=True))
    return bool(pairs) and all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-3) for (_, a), (_, b) in pairs)


def measure(name, way, seconds):
    """One program compiled one way, in a process that compiles nothing else."""
    import torch
    from programs_of_sizes import PROGRAMS

    program = PROGRAMS[name]
    torch.manual_seed(0)
    model = program.build().train(program.trains)
    calls = program.calls()
    own = copy.deepcopy(model)
    kept = copy.deepcopy  # gradients and buffers belong to the model, and the next call changes them
    expected = [kept(program.perform(model, model, call)) for call in calls]
    function = compiled(own, way)
    first, first_used, right = 0.0, 0.0, True
    for call, answer in zip(calls, expected):
        taken, used, result = timed(lambda: program.perform(own, function, call))
        first, first_used = first + taken, first_used + used
        right = right and close(answer, kept(result))
    graphs, breaks, in_eager, reasons = compilations(way)
    steady = {kind: [float("inf")] * len(calls) for kind in ("eager", "compiled", "used")}
    begin, rounds = time.perf_counter(), 0
    while rounds < 3 or (rounds < 30 and time.perf_counter() - begin < seconds):
        for k, call in enumerate(calls):
            ways = [("eager", model, model), ("compiled", own, function)]
            for kind, module, target in ways if (rounds + k) % 2 else reversed(ways):
                taken, used, _ = timed(lambda: program.perform(module, target, call))
                steady[kind][k] = min(steady[kind][k], taken)
                if kind == "compiled":
                    steady["used"][k] = min(steady["used"][k], used)
        rounds += 1
    eager, ours, used = (sum(steady[kind]) for kind in ("eager", "compiled", "used"))
    return {
        "graphs": graphs, "breaks": breaks, "in eager": in_eager, "reasons": reasons, "later": compilations(way)[0] - graphs,
        "first": first, "compiling": first - ours, "compiling used": first_used - used, "eager": eager, "steady": ours, "right": right,
    }  # fmt: skip


def worker(name, way, arguments):
    with tempfile.TemporaryDirectory(prefix="oxyfuel_programs_") as folder:
        threads = str(arguments.threads)
        environment = dict(os.environ, OXYFUEL_CACHE=folder, TORCHINDUCTOR_CACHE_DIR=folder + "/peer", OMP_NUM_THREADS=threads)
        environment.update(OXYFUEL_COMPILE_THREADS=threads, TORCHINDUCTOR_COMPILE_THREADS=threads)
        command = [sys.executable, __file__, "--worker", name, "--way", way, "--seconds", str(arguments.seconds)]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=arguments.timeout)
        except subprocess.TimeoutExpired:
            return {"error": f"took longer than {arguments.timeout} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raised = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception")) and not line.startswith(" ")]
        return {"error": (raised or lines or [f"exit status {done.returncode}"])[-1]}
    warnings = [line for line in done.stderr.splitlines() if "oxyfuel" in line or "sizes and numbers are constants" in line]
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "warnings": warnings}


def cells(found):
    if "error" in found:
        return ["failed", "", "", "", ""]
    graphs = str(found["graphs"] + found["later"])
    if found["breaks"]:
        graphs += f", {len(found['breaks'])} breaks"
    if found["in eager"]:
        graphs += f", {found['in eager']} in eager"
    seconds = [f"{found[name]:.2f}" for name in ("compiling", "compiling used")]
    return [graphs, *seconds, f"{found['steady'] / found['eager']:.2f}", "yes" if found["right"] else "NO"]


def faults(title, way, found, most):
    """What is not as it has to be, of ours."""
    label = f"{title}, {way}: "
    if "error" in found:
        return [label + found["error"]]
    if way not in OURS:
        return []
    result = [label + "other results than eager's"] if not found["right"] else []
    if found["graphs"] + found["later"] > most:
        result.append(label + f"{found['graphs'] + found['later']} compilations; " + "; ".join(found["reasons"]))
    result += [label + text for text in found["breaks"] + found["warnings"]]
    return result + ([label + f"{found['in eager']} calls in eager"] if found["in eager"] else [])


def main():
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="*", help="names of programs; all without it")
    parser.add_argument("--list", action="store_true", help="the names of programs")
    parser.add_argument("--peer", action="store_true", help="torch.compile beside")
    parser.add_argument("--only-peer", action="store_true", help="torch.compile alone")
    parser.add_argument("--seconds", type=float, default=3.0, help="of steady calls, a program and way")
    parser.add_argument("--threads", type=int, default=1, help="of each process, for running and compiling")
    parser.add_argument("--timeout", type=float, default=1200.0, help="seconds that a program may take")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(arguments.worker, arguments.way, arguments.seconds)))
        return 0
    from programs_of_sizes import PROGRAMS

    if arguments.list:
        print("\n".join(f"{name}: {program.title}" for name, program in PROGRAMS.items()))
        return 0
    ways = [way for way in WAYS if (way in OURS and not arguments.only_peer) or (way not in OURS and (arguments.peer or arguments.only_peer))]
    titles = ["program", "way", "compilations", "compiling, s", "of processors, s", "steady / eager", "right"]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles), flush=True)
    notes = []
    for name in arguments.programs or PROGRAMS:
        title = PROGRAMS[name].title
        for way in ways:
            found = worker(name, way, arguments)
            print("| " + " | ".join([title, way, *cells(found)]) + " |", flush=True)
            notes += faults(title, way, found, PROGRAMS[name].most)
            if name == "mlp" and way == "ours" and "error" not in found:
                notes.append(f"sizes 1 to 64 through an MLP, first to last, minus eager's: {found['first'] - found['eager']:.3f} s")
    print("\n" + "\n".join(notes))
    return int(any(not note.startswith("sizes 1 to 64") for note in notes))


if __name__ == "__main__":
    sys.exit(main())
