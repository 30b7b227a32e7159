"""Compiles a BERT and a ResNet-50 with random weights, checks their answers and shows what it brings.

    python benchmarks/demo.py [--small] [--no-peer]
"""

import argparse
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from statistics import median

import models
import report
import run
from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

NAMES = {"bert": "transformers BertForMaskedLM", "resnet50": "timm resnet50"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="small variants of the models, for a quick look")
    parser.add_argument("--no-peer", action="store_true", help="without torch.compile")
    parser.add_argument("--seconds", type=float, default=8.0, help="of steady calls a model")
    return parser.parse_args()


class Steps:
    """Shows which step runs: a moving line a step on a terminal, plain lines elsewhere."""

    def __init__(self, console):
        columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), TimeElapsedColumn())
        self.console = console
        self.bar = Progress(*columns, console=console, disable=not console.is_terminal)

    @contextmanager
    def step(self, text):
        if not self.console.is_terminal:
            self.console.print(text, soft_wrap=True)
        task = self.bar.add_task(text, total=1)
        yield
        self.bar.update(task, completed=1)


def measure(cases, backends, arguments, console):
    """One result a case, each measured as run.py does it."""
    results = []
    steps = Steps(console)
    with tempfile.TemporaryDirectory(prefix="oxyfuel_demo_") as folder, steps.bar:
        hook = run.build_memory_hook(folder)
        for case in cases:
            title = NAMES[case.model]
            with tempfile.TemporaryDirectory(prefix="oxyfuel_demo_cache_") as cache:
                extra = ["--seconds", str(arguments.seconds)]
                with steps.step(f"{title}: compile, check the answer, take times"):
                    result = run.worker("time", case, backends, cache, extra=extra)
                result.setdefault("case", asdict(case))
                if hook is not None and "error" not in result:
                    result["memory"] = {}
                    for backend in backends:
                        with steps.step(f"{title}: peak memory of {backend}"):
                            result["memory"][backend] = run.worker("memory", case, [backend], cache, hook)
            results.append(result)
    return results


def stage_table(results):
    """Where the first calls of oxyfuel went; passes are one stage here."""
    table = Table(title="Stages of oxyfuel's first call, seconds", box=box.SIMPLE, title_justify="left")
    table.add_column("stage")
    spent = []
    for result in results:
        table.add_column(NAMES[result["case"]["model"]], justify="right")
        spent.append(result["backends"][report.OXYFUEL]["metrics"]["seconds"])
    for stage in spent[0]:
        if "." not in stage:
            table.add_row(stage, *(f"{seconds.get(stage, 0):.3f}" for seconds in spent))
    return table


def figures_table(result):
    """At most 80 columns wide, unless an answer is wrong and there is more to say."""
    table = Table(title=NAMES[result["case"]["model"]], box=box.SIMPLE, title_justify="left")
    table.add_column("")
    for column in ("first call s", "steady ms", "speed-up", "peak MiB"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("answer")
    for backend, record in result["backends"].items():
        ratio, low, high = report.speed_up(result, backend)
        peak = report.peak_bytes(result, backend)
        table.add_row(
            backend,
            f"{record['first_call']:.2f}",
            f"{1000 * median(record['seconds']):.1f}",
            "" if backend == report.EAGER else f"{ratio:.2f}x [{low:.2f}, {high:.2f}]",
            f"{peak / report.MEBIBYTE:.0f}" if peak else "",
            "[green]right" if record["accurate"] else f"[red]{'; '.join(record['problems'])}",
        )
    return table


def main():
    arguments = parse_arguments()
    console = Console()
    size = "small" if arguments.small else "base"
    cases = [models.Case(name, size, mode="inference_mode") for name in NAMES]
    backends = [report.EAGER, report.OXYFUEL] + ([] if arguments.no_peer else [report.PEER])
    results = measure(cases, backends, arguments, console)
    right = [result for result in results if "error" not in result]
    console.print()
    if right:
        console.print(stage_table(right))
        console.print("Batch 1, float32, inference mode; first calls with empty caches", style="bold")
        console.print()
    for result in results:
        if "error" in result:
            console.print(f"[red]{NAMES[result['case']['model']]} failed: {result['error']}")
        else:
            console.print(figures_table(result))
    return 1 if any(report.failed(result) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
