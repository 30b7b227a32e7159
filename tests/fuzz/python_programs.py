"""Differential fuzzing of capture: random Python programs in eager and compiled.

    python tests/fuzz/python_programs.py --seeds 0:1000 [--kind library|torch|expressions] [--jobs 2] [--shrink] [--show]

Prints a line for every program that differs, and with --shrink the smallest program found that differs as well.
A failing seed is run again with ``--seeds N:N+1 --show``. Exits with 1 if any program differs.
"""

import argparse
import faulthandler
import importlib
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

MEMORY = 8 << 30  # bytes of address space a worker may have
GENERATORS = {
    "python": "program_generator",
    "library": "library_generator",
    "torch": "torch_call_generator",
    "expressions": "expression_generator",
}

os.environ.setdefault("OXYFUEL_STRICT", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from seeds import seeds_in  # noqa: E402


def program_of(kind, seed):
    return importlib.import_module(GENERATORS[kind]).generate(seed)


def work(kind, seeds):
    """Checks seeds, one line of JSON each. In a process of its own: a crash ends it."""
    import program_runner

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")

    def tell(**answer):
        print(json.dumps(answer), flush=True)

    for seed in seeds:
        tell(begin=seed, phase="eager")
        faulthandler.dump_traceback_later(30, exit=True)
        program = program_of(kind, seed)
        verdict = program_runner.check(program, on_compiled=lambda: tell(begin=seed, phase="compiled"))
        faulthandler.cancel_dump_traceback_later()
        tell(seed=seed, difference=verdict.difference, graphs=verdict.graphs, breaks=verdict.breaks, skipped=verdict.skipped)


def check_alone(program, seconds=60):
    """The difference of one program, checked in a process of its own."""
    text = json.dumps({"seed": program.seed, "source": program.source, "calls": program.calls})
    try:
        done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--check"], input=text, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "it hangs"
    if done.returncode == 1:
        return ""  # it is no program any more
    if done.returncode:
        return f"crash: {done.returncode} {done.stderr[-600:]}"
    return json.loads(done.stdout.splitlines()[-1])


def check_given():
    import program_generator
    import program_runner

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    program = program_generator.Program(**json.loads(sys.stdin.read()))
    print(json.dumps(program_runner.check(program).difference))


def class_of(difference):
    """What stays the same while a program shrinks."""
    if difference.startswith("crash"):
        return "crash"
    if not difference.startswith("/"):
        return difference[:40]
    return "difference"


def shrink(kind, seed, difference):
    import program_runner
    import program_shrinker

    program = program_of(kind, seed)
    wanted = class_of(difference)
    alone = wanted == "crash" or program_runner.check(program).difference == ""

    def fails(candidate):
        found = check_alone(candidate) if alone else program_runner.check(candidate, seconds=10).difference
        return bool(found) and class_of(found) == wanted

    smallest = program_shrinker.shrink(program, fails, 150 if alone else 2000)
    print(f"---- seed {seed}, smallest program found:\n{smallest.source}calls = {smallest.calls}")
    print(check_alone(smallest) if alone else program_runner.check(smallest).difference, "\n", flush=True)


def run_all(kind, seeds, jobs, report, chunk=250):
    """Checks seeds in worker processes; calls ``report`` with each answer."""
    pending = list(seeds[::chunk])[::-1]
    running = []

    def start(a, b):
        process = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "--kind", kind, "--work", f"{a}:{b}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return [process, a, b]

    while pending or running:
        while pending and len(running) < jobs:
            a = pending.pop()
            running.append(start(a, min(a + chunk, seeds.stop)))
        for entry in list(running):
            process, a, b = entry
            if process.poll() is None and len(running) == jobs and jobs > 1:
                time.sleep(0.05)
                continue
            out, err = process.communicate()
            running.remove(entry)
            begun, phase = a - 1, "eager"
            for line in out.splitlines():
                if not line.startswith("{"):
                    continue
                answer = json.loads(line)
                begun, phase = answer.get("begin", begun), answer.get("phase", phase)
                if "seed" in answer:
                    report(answer)
            if process.returncode:
                skipped = phase == "eager"
                report({"seed": begun, "difference": "" if skipped else f"crash: {process.returncode} {err[-600:]}", "graphs": 0, "breaks": 0, "skipped": skipped})
                if begun + 1 < b:
                    running.append(start(begun + 1, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:200")
    parser.add_argument("--kind", choices=list(GENERATORS), default="python", help="all of Python, calls of the standard library or of torch, or expressions with breaks in all places")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--limit", type=int, default=20, help="shrink at most so many")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check:
        return check_given()
    chosen = seeds_in(options.work or options.seeds)
    if options.work:
        return work(options.kind, chosen)
    if options.show:
        for seed in chosen:
            program = program_of(options.kind, seed)
            print(program.source + f"calls = {program.calls}\n")
    totals, failures = {"programs": 0, "graphs": 0, "breaks": 0, "skipped": 0}, []

    def report(answer):
        totals["programs"] += 1
        totals["graphs"] += answer["graphs"]
        totals["breaks"] += answer["breaks"]
        totals["skipped"] += answer["skipped"]
        if answer["difference"]:
            failures.append(answer)
            print(f"seed {answer['seed']}: {answer['difference']}", flush=True)

    begin = time.monotonic()
    run_all(options.kind, chosen, options.jobs, report)
    print(f"seeds {options.seeds}: {totals['programs']} programs, {totals['graphs']} graphs, {totals['breaks']} reasons for breaks, "
          f"{totals['skipped']} skipped, {len(failures)} differ; {time.monotonic() - begin:.0f} s", flush=True)
    if options.shrink:
        for answer in failures[: options.limit]:
            shrink(options.kind, answer["seed"], answer["difference"])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
