"""Compiles every model class that transformers builds from a small configuration and a model of every timm family.

    python benchmarks/sweep/sweep.py --results results/sweep.jsonl --markdown docs/sweep.md
    python benchmarks/sweep/sweep.py --sizes --workers 2 --markdown docs/sweep-sizes.md

Each model runs in a process of its own, which may crash or hang: eager twice, in float64, compiled twice. Results are
appended to a file of JSON lines; what is in it already is not run again. The table says how each model was captured
(whole, broken: several graphs, eager: none) and whether the answer was right by the rule of accuracy.py.

With --sizes one compiled model is called with three sizes, twice each: batch 2, 3 and 5, and other lengths or images.
"""

import argparse
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(HERE.parent))

import sweep_report  # noqa: E402

LIBRARIES = ("transformers", "timm")
POLL_SECONDS = 0.02
WALL_FACTOR = 5  # a model may take so many times its processor time before it counts as hanging
LOG_BYTES = 4000  # of a child's output that are kept
NUMBERS_LINE = "sizes and numbers are constants: "  # OXYFUEL_LOGS=recompiles: why there are no symbols


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=LIBRARIES, action="append", help="both if not given")
    parser.add_argument("--which", choices=["base", "all"], default="base", help="of transformers: with heads too, or not")
    parser.add_argument("--only", default="", help="a regular expression that names must match somewhere")
    parser.add_argument(
        "--sizes",
        nargs="?",
        const="together",
        choices=["together", "batch-first"],
        help="three sizes a model: all that varies at each call, or the batch alone at the second",
    )
    parser.add_argument("--every", type=int, default=1, help="run every so manieth model only")
    parser.add_argument("--workers", type=int, default=1, help="models at a time")
    parser.add_argument("--threads", type=int, default=1, help="of each model")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds of processor time a model")
    parser.add_argument("--results", type=Path, help="resumed if it is there; results/sweep.jsonl if not given")
    parser.add_argument("--again", default="", help="outcomes to run again, comma-separated: wrong,raised,broken")
    parser.add_argument("--markdown", type=Path, help="where the table goes")
    parser.add_argument("--report-only", action="store_true", help="run nothing: report the results there are")
    arguments = parser.parse_args(argv)
    arguments.library = arguments.library or list(LIBRARIES)
    arguments.results = arguments.results or Path("results/sweep-sizes.jsonl" if arguments.sizes else "results/sweep.jsonl")
    if arguments.every < 1:
        parser.error("--every: at least 1")
    if arguments.workers < 1 or arguments.threads < 1:
        parser.error("--workers and --threads: at least 1")
    return arguments


def read_results(path):
    """(library, name) -> its latest result."""
    lines = path.read_text().splitlines() if path.exists() else []
    results = [json.loads(line) for line in lines if line]
    return {(result["library"], result["name"]): result for result in results}


def wanted(arguments):
    """The (library, name) pairs that the options ask for."""
    import sweep_timm
    import sweep_transformers

    names = {"transformers": lambda: sweep_transformers.names(arguments.which), "timm": sweep_timm.names}
    pairs = [(library, name) for library in arguments.library for name in names[library]()]
    return [(library, name) for library, name in pairs if re.search(arguments.only, name)][:: arguments.every]


class Child:
    """A forked process that examines one model; forking spares the imports."""

    def __init__(self, library, name, threads, timeout, sizes=None):
        self.library, self.name, self.timeout, self.sizes = library, name, timeout, sizes
        self.answer = tempfile.TemporaryFile("w+")
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.start = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(threads)

    def _run(self, threads):
        """In the child: writes the result and never returns."""
        status = 1
        try:
            for descriptor in (1, 2):
                os.dup2(self.log.fileno(), descriptor)
            import sweep_check
            import torch

            torch.set_num_threads(threads)
            used = int(time.process_time())
            limit = used + max(1, round(self.timeout * threads))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
            with redirect_stdout(sys.stderr):
                if self.sizes:
                    import sweep_sizes

                    result = sweep_sizes.examine(self.library, self.name, self.sizes)
                else:
                    result = sweep_check.examine(self.library, self.name)
            json.dump(result, self.answer)
            self.answer.flush()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def result(self):
        """The result once there is one, else None."""
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.start
        failure = {"library": self.library, "name": self.name, "model": self.name, "seconds": seconds}
        if not ended:
            if seconds < WALL_FACTOR * self.timeout:
                return None
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status) if ended else -signal.SIGXCPU
        if code == -signal.SIGXCPU:
            return {**failure, "outcome": "timed out", "reason": f"took longer than {self.timeout:g} s", "log": self._log()}
        if code < 0:
            return {**failure, "outcome": "crashed", "reason": signal.Signals(-code).name, "log": self._log()}
        if code > 0:
            return {**failure, "outcome": "not built", "reason": self._log().strip().splitlines()[-1][:200], "log": self._log()}
        self.answer.seek(0)
        result = {**json.load(self.answer), "seconds": seconds}
        log = self._log(most=None)
        if NUMBERS_LINE in log:
            result.update(why_numbers=sorted({line.split(NUMBERS_LINE)[1][:300] for line in log.splitlines() if NUMBERS_LINE in line}))
        if "oxyfuel: internal error" in log or "Please report it" in log:
            result.update(internal_error=next(line for line in log.splitlines() if "oxyfuel" in line)[:600])
        return result

    def _log(self, most=LOG_BYTES):
        self.log.seek(0)
        return self.log.read()[-(most or 0) :]


def run(pairs, arguments, show):
    """Yields the results as they come. show(names) is told what runs."""
    waiting, running = list(pairs), []
    try:
        while waiting or running:
            while waiting and len(running) < arguments.workers:
                running.append(Child(*waiting.pop(0), arguments.threads, arguments.timeout, arguments.sizes))
                show([child.name for child in running])
            for child in list(running):
                result = child.result()
                if result is not None:
                    running.remove(child)
                    yield result
            time.sleep(POLL_SECONDS)
    finally:
        for child in running:
            os.kill(child.pid, signal.SIGKILL)


def sweep(pairs, arguments):
    """Runs the models and appends their results to the file."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    # No thread that refreshes the bar: the children are forked from this process.
    with Progress(*columns, auto_refresh=False) as bar, arguments.results.open("a") as file:
        task = bar.add_task("", total=len(pairs))

        def show(names):
            bar.update(task, description=" ".join(names), refresh=bar.console.is_terminal)

        for result in run(pairs, arguments, show):
            file.write(json.dumps(result) + "\n")
            file.flush()
            bar.advance(task)
            if sweep_report.failed(result):
                bar.console.print(f"[red]{result['outcome']}[/] {result['library']} {result['name']}", highlight=False)


def main(argv=None):
    arguments = parse_arguments(argv)
    if arguments.sizes:
        os.environ.setdefault("OXYFUEL_LOGS", "recompiles")
    done = read_results(arguments.results)
    asked = wanted(arguments)
    pairs = [] if arguments.report_only else asked
    again = set(arguments.again.split(","))
    pairs = [pair for pair in pairs if pair not in done or done[pair]["outcome"] in again]
    if pairs:
        import oxyfuel  # noqa: F401
        import sweep_check  # noqa: F401
        import sweep_sizes  # noqa: F401

        sweep(pairs, arguments)
    results = list(read_results(arguments.results).values())
    print((sweep_report.sizes_summary if arguments.sizes else sweep_report.summary)(results))
    if arguments.markdown:
        markdown = sweep_report.sizes_markdown if arguments.sizes else sweep_report.markdown
        arguments.markdown.write_text(markdown(results, len(asked)))
    return 1 if any(sweep_report.failed(result) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
