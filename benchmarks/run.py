"""Benchmarks eager, oxyfuel and torch.compile on real models, each model in processes of its own.

    python benchmarks/run.py --suite inference --json results/inference.json --markdown results/inference.md
    python benchmarks/run.py --capture-only            # what backend="eager" of both costs over eager
    python benchmarks/run.py --device cuda …           # gpu/whole_models.py, which takes the other arguments

First calls are measured with torch.compile's caches empty; steady calls in turn, as medians with bootstrap intervals
of their ratios; peak memory in a process a backend, as the bytes of live large heap blocks (memory_hook.c).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import report

HERE = Path(__file__).resolve().parent
BACKENDS = ("eager", "oxyfuel", "torch.compile")
CAPTURE_BACKENDS = ("eager", "oxyfuel capture", "torch.compile capture")


def build_memory_hook(folder):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = Path(folder) / "memory_hook.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(HERE / "memory_hook.c"), "-o", str(library)], check=True)
    return library


def worker(what, case, backends, folder, hook=None, extra=(), timeout=1800):
    """The JSON that worker.py prints, or {"error": ...}."""
    environment = dict(os.environ)
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    environment["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"
    environment["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    if hook is not None:
        environment["LD_PRELOAD"] = str(hook)
    command = [sys.executable, str(HERE / "worker.py"), what, "--case", json.dumps(asdict(case))]
    command += ["--backends", ",".join(backends), *extra]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {timeout} s"}
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"], "stderr": done.stderr[-4000:]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(case, backends, arguments, hook):
    with tempfile.TemporaryDirectory(prefix="oxyfuel_bench_") as folder:
        extra = ["--seconds", str(arguments.seconds), "--rounds", str(arguments.rounds), "--options", arguments.options]
        result = worker("time", case, backends, folder, extra=extra)
        result.setdefault("case", asdict(case))
        if hook is not None and "error" not in result:
            # The cache is warm now, which changes nothing about the memory of a steady call.
            result["memory"] = {
                backend: worker("memory", case, [backend], folder, hook, ["--options", arguments.options])
                for backend in backends
            }
        return result


def progress(cases):
    """Yields the cases, showing which one runs."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("", total=len(cases))
        for case in cases:
            bar.update(task, description=case.title)
            yield case
            bar.advance(task)


def parse_arguments(given):
    import models

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="inference", choices=["inference", "full", "small"])
    parser.add_argument(
        "--modes",
        default="inference",
        choices=["inference", "no_grad", "training", "distillation", "whole_step"],
        help="inference: under inference_mode; training: forward and backward pass, batch 2; distillation: of a loss over"
        " all hidden states and attention weights too; whole_step: AdamW's too, compiled",
    )
    parser.add_argument("--models", default="", help=f"comma-separated, of {', '.join(models.NAMES)}; all if empty")
    parser.add_argument("--backends", help=f"{','.join(BACKENDS)} if not given")
    parser.add_argument("--capture-only", action="store_true", help="run what was captured operator by operator")
    parser.add_argument("--seconds", type=float, default=10.0, help="of steady calls a model")
    parser.add_argument("--rounds", type=int, default=15, help="of steady calls a model, at least")
    parser.add_argument("--options", default="{}", help='as JSON: {"oxyfuel": {"freezing": false}}')
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args(given)
    arguments.names = [name for name in arguments.models.split(",") if name] or list(models.NAMES)
    unknown = set(arguments.names) - set(models.NAMES)
    if unknown:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    offered = CAPTURE_BACKENDS if arguments.capture_only else BACKENDS
    arguments.backend_names = arguments.backends.split(",") if arguments.backends else list(offered)
    if set(arguments.backend_names) - set(offered) or "eager" not in arguments.backend_names:
        parser.error(f"--backends: expected eager and any of {', '.join(offered)}")
    mode = "inference_mode" if arguments.modes == "inference" else arguments.modes
    arguments.cases = [case for case in models.suite(arguments.suite, mode) if case.model in arguments.names]
    return arguments


def main():
    devices = argparse.ArgumentParser(add_help=False)
    devices.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    chosen, others = devices.parse_known_args()
    if chosen.device == "cuda":
        return subprocess.run([sys.executable, HERE / "gpu" / "whole_models.py", *others], check=False).returncode
    arguments = parse_arguments(others)
    results = []
    with tempfile.TemporaryDirectory(prefix="oxyfuel_hook_") as folder:
        hook = None if arguments.no_memory or arguments.capture_only else build_memory_hook(folder)
        for case in progress(arguments.cases):
            results.append(measure(case, arguments.backend_names, arguments, hook))
            if arguments.json:  # after every model: a run that is cut short keeps what it has
                arguments.json.parent.mkdir(parents=True, exist_ok=True)
                arguments.json.write_text(json.dumps(results, indent=1))
    text = report.capture_markdown(results) if arguments.capture_only else report.markdown(results)
    print(text)
    if arguments.markdown:
        arguments.markdown.parent.mkdir(parents=True, exist_ok=True)
        arguments.markdown.write_text(text)
    return 1 if any(report.failed(result) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
