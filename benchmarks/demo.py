"""Compiles a BERT and a ResNet-50 with random weights, checks their answers and shows what it brings.

    python benchmarks/demo.py [--small] [--no-peer]
"""

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import models  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: E402
from rich.table import Table  # noqa: E402

NAMES = {"bert": "transformers BertForMaskedLM", "resnet50": "timm resnet50"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="small variants of the models, for a quick look")
    parser.add_argument("--no-peer", action="store_true", help="without torch.compile")
    parser.add_argument("--seconds", type=float, default=8.0, help="of steady calls a model")
    return parser.parse_args()


def measure(cases, backends, arguments):
    """One result a case, each measured as run.py does it, with a line of progress for each step."""
    results = []
    columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), TimeElapsedColumn())
    with tempfile.TemporaryDirectory(prefix="oxyfuel_demo_") as folder, Progress(*columns) as bar:
        hook = run.build_memory_hook(folder)
        for case in cases:
            title = NAMES[case.model]
            task = bar.add_task(f"{title}: compile, check the answer, time {', '.join(backends)}", total=1)
            with tempfile.TemporaryDirectory(prefix="oxyfuel_demo_cache_") as cache:
                extra = ["--seconds", str(arguments.seconds)]
                result = run.worker("time", case, backends, cache, extra=extra)
                result.setdefault("case", asdict(case))
                bar.update(task, completed=1)
                if hook is not None and "error" not in result:
                    task = bar.add_task(f"{title}: peak memory", total=len(backends))
                    result["memory"] = {}
                    for backend in backends:
                        result["memory"][backend] = run.worker("memory", case, [backend], cache, hook)
                        bar.advance(task)
            results.append(result)
    return results


def stage_table(result):
    """Where oxyfuel's first call went."""
    table = Table(title=f"{NAMES[result['case']['model']]}: seconds a stage of oxyfuel's first call")
    table.add_column("stage")
    table.add_column("s", justify="right")
    for stage, seconds in result["backends"][report.OXYFUEL]["metrics"]["seconds"].items():
        table.add_row(stage, f"{seconds:.3f}")
    return table


def figures_table(results):
    table = Table(title="batch 1, float32, inference mode; first call with empty caches")
    for column in ("model", "", "first call s", "steady ms", "speed-up", "peak MiB", "answer"):
        table.add_column(column, justify="left" if column in ("model", "", "answer") else "right")
    for result in results:
        title = NAMES[result["case"]["model"]]
        if "error" in result:
            table.add_row(title, f"[red]failed: {result['error']}")
            continue
        for backend, record in result["backends"].items():
            ratio, low, high = report.speed_up(result, backend)
            peak = report.peak_bytes(result, backend)
            table.add_row(
                title,
                backend,
                f"{record['first_call']:.2f}",
                f"{1000 * median(record['seconds']):.1f}",
                "" if backend == report.EAGER else f"{ratio:.2f}x [{low:.2f}, {high:.2f}]",
                f"{peak / report.MEBIBYTE:.0f}" if peak else "",
                "[green]right" if record["accurate"] else f"[red]{'; '.join(record['problems'])}",
            )
            title = ""
        table.add_section()
    return table


def main():
    arguments = parse_arguments()
    console = Console()
    size = "small" if arguments.small else "base"
    cases = [models.Case(name, size, mode="inference_mode") for name in NAMES]
    backends = [report.EAGER, report.OXYFUEL] + ([] if arguments.no_peer else [report.PEER])
    results = measure(cases, backends, arguments)
    for result in results:
        if "error" not in result:
            console.print(stage_table(result))
    console.print(figures_table(results))
    return 1 if any(report.failed(result) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
