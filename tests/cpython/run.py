"""CPython's own test modules with every test function compiled: the same outcomes as without.

    python tests/cpython/run.py [--modules test_dict,test_list | all] [--jobs 2] [--timeout 600] [--write]
                                [--results results/cpython.jsonl]

Each module runs in two processes, one as it is and one with every test method wrapped by ``oxyfuel.compile``. Prints
the tests whose outcomes differ; ``--write`` writes the table docs/cpython-tests.md. A reason for a difference that is
meant to stay stands in ``KNOWN``. Results are appended to a file of JSON lines, if one is given; what is in it already
is not run again. Exits with 1 if a required module differs in a way that is not known.
"""

import argparse
import concurrent.futures
import faulthandler
import importlib
import io
import json
import os
import pkgutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = (
    "test_generators test_coroutines test_contextlib test_exceptions test_dict test_list test_set test_iter test_itertools "
    "test_functools test_collections test_dataclasses test_enum test_descr test_scope test_with test_raise test_copy "
    "test_unpack test_patma"
).split()
# What is installed and not run, by reason.
LEFT_OUT = {
    "needs another system": "test_kqueue test_launcher test_msilib test_startfile test_winconsoleio test_winreg test_winsound",
    "needs a display": "test_idle test_tcl test_tix test_tk test_tkinter test_ttk test_ttk_guionly test_ttk_textonly test_turtle",
    "downloads": "test_smtpnet test_urllib2net test_urllibnet test_xmlrpc_net test_codecmaps_cn test_codecmaps_hk"
    " test_codecmaps_jp test_codecmaps_kr test_codecmaps_tw",
    "builds or installs software": "test_cext test_cppext test_distutils test_ensurepip test_venv test_peg_generator",
    "tests other processes, minutes each": "test_multiprocessing_fork test_multiprocessing_forkserver"
    " test_multiprocessing_spawn test_multiprocessing_main_handling test_concurrent_futures test_subprocess test_gdb"
    " test_regrtest test_faulthandler test_embed test_cmd_line test_cmd_line_script test_tools test_c_locale_coercion",
    "takes gigabytes": "test_bigmem test_bigaddrspace test_zipfile64 test_largefile",
}

# (module, beginning of the test's id): why its outcome differs.
KNOWN = {
    ("test_dis", "test_loop_quicken"): "looks for what CPython's loop leaves in code that it has run often",
    ("test_module", "test_clear_dict_in_ref_cycle"): "a module made in a function, a limit in docs/limits.md",
    ("test_sys_settrace", "test_20_async_for_loop"): "CPython 3.13 tells tracers of ends of coroutines twice under PEP 523",
}


class Recorder(unittest.TestResult):
    """One line for the start and one for the outcome of each test."""

    def __init__(self, out):
        super().__init__()
        self.out, self.outcome = out, None

    def tell(self, **line):
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.outcome, self.text = "ok", ""
        self.tell(begin=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.tell(test=test.id(), outcome=self.outcome, text=self.text[-1500:])

    def set(self, outcome, err=None):
        self.outcome = outcome
        if err is not None:
            self.text = "".join(__import__("traceback").format_exception(*err))

    def addError(self, test, err):
        self.set("error", err)

    def addFailure(self, test, err):
        self.set("failure", err)

    def addSkip(self, test, reason):
        self.set("skip")

    def addExpectedFailure(self, test, err):
        self.set("expected failure")

    def addUnexpectedSuccess(self, test):
        self.set("unexpected success")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.set("failure", err)


def installed():
    """The names of the installed test modules but those of LEFT_OUT."""
    import test

    left_out = set(" ".join(LEFT_OUT.values()).split())
    names = {module.name for module in pkgutil.iter_modules(test.__path__) if module.name.startswith("test_")}
    return sorted(names - left_out)


def cases_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases_of(item)
        else:
            yield item


def run_module(name, compiled, skip):
    """In a process of its own: runs the module's tests and writes their outcomes."""
    out = os.fdopen(os.dup(1), "w")
    sys.stdout = io.StringIO()
    from test import support

    support.verbose = False
    import torch  # noqa: F401: both runs have what is loaded with it

    import oxyfuel

    try:
        module = importlib.import_module(name if "." in name else "test." + name)
    except unittest.SkipTest:
        return
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    for case in cases_of(suite):
        method_name = getattr(case, "_testMethodName", None)
        if compiled and isinstance(case, unittest.TestCase) and type(case).__name__ not in ("_FailedTest", "DocTestCase"):
            method = getattr(case, method_name)
            case.__unittest_expecting_failure__ = getattr(method, "__unittest_expecting_failure__", False)
            setattr(case, method_name, oxyfuel.compile(method, backend="eager", options={"fill_caches_in_eager": False}))
        if case.id() in skip:
            setattr(case, method_name, unittest.skip("ends the process")(lambda: None))
    suite.run(Recorder(out))


def outcomes(name, compiled, timeout):
    """{test id: (outcome, text)}; a test that ends the process has the outcome "crash"."""
    found, skip = {}, []
    environment = dict(os.environ, OXYFUEL_STRICT="1", PYTHONHASHSEED="0")
    for _ in range(6):
        mode = "compiled" if compiled else "plain"
        command = [sys.executable, "-W", "ignore", __file__, "--run", name, mode, json.dumps(skip)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, cwd="/tmp")
            stdout, stderr, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            stdout, stderr, code = (late.stdout or b"").decode(), "", "timeout"
        begun = None
        for line in stdout.splitlines():
            if not line.startswith("{"):
                continue
            answer = json.loads(line)
            if "begin" in answer:
                begun = answer["begin"]
            elif answer["test"] not in skip:
                found[answer["test"]] = (answer["outcome"], answer["text"])
                begun = None
        if code == 0 or begun is None:
            if code != 0 and not found:
                found["<module>"] = ("crash", str(stderr)[-1500:])
            return found
        found[begun] = ("timeout" if code == "timeout" else "crash", f"{code} {stderr[-1500:]}")
        skip.append(begun)
    return found


def compare(name, timeout):
    plain, compiled = outcomes(name, False, timeout), outcomes(name, True, timeout)
    differing = {}
    for test in sorted(set(plain) | set(compiled)):
        a, b = plain.get(test, ("missing", ""))[0], compiled.get(test, ("missing", ""))
        if a != b[0]:
            differing[test] = (a, *b)
    return name, len(plain), differing


def reason_for(module, test):
    for (known_module, beginning), reason in KNOWN.items():
        if module == known_module and beginning in test:
            return reason
    return ""


def table(results):
    """The text of docs/cpython-tests.md. `results`: module -> (number of tests, {test: outcomes})."""
    lines = [
        "# CPython's own tests, compiled",
        "",
        f"Python {sys.version.split()[0]}'s test modules with every test method wrapped by `oxyfuel.compile(..., backend=\"eager\")`,",
        "compared with the same run without: `tests/cpython/run.py --modules all --write` makes this table.",
        "",
        "| module | tests | same outcome | differing |",
        "|---|---|---|---|",
    ]
    for name, (count, differing) in sorted(results.items()):
        cells = []
        for test, (plain, compiled, _) in differing.items():
            reason = reason_for(name, test)
            cells.append(f"`{test.split('.', 2)[-1]}`: {plain}, compiled {compiled}" + (f" ({reason})" if reason else ""))
        lines.append(f"| {name} | {count} | {count - len(differing)} | {'; '.join(cells)} |")
    total = sum(count for count, _ in results.values())
    different = sum(len(differing) for _, differing in results.values())
    share = 100 * (total - different) / max(total, 1)
    lines += ["", f"{len(results)} modules, {total} tests, {total - different} with the same outcome ({share:.1f} %).", ""]
    lines += ["Not run:", ""]
    lines += [f"- {reason}: {', '.join(names.split())}" for reason, names in LEFT_OUT.items()]
    return "\n".join(lines) + "\n"


def read_results(path):
    """module -> (number of tests, {test: outcomes}), of what is in the file."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    return {name: (count, differing) for name, count, differing in map(json.loads, lines)}


def report(name, count, differing, verbose):
    """Prints what differs; whether that is bad."""
    print(f"{name}: {count} tests, {len(differing)} differ", flush=True)
    for test, (plain, compiled, text) in differing.items():
        print(f"    {test}: {plain}, compiled {compiled} {reason_for(name, test)}")
        if verbose:
            print("        " + text[-700:].replace("\n", "\n        "), flush=True)
    return name in REQUIRED and not all(reason_for(name, test) for test in differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", default="required", help="names, 'required' or 'all'")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--results", type=Path, help="resumed if it is there")
    parser.add_argument("--verbose", action="store_true", help="print how the differing tests end")
    options = parser.parse_args()
    names = {"required": REQUIRED, "all": list(dict.fromkeys([*REQUIRED, *installed()]))}.get(options.modules) or options.modules.split(",")
    results = read_results(options.results)
    bad = any([report(name, *result, options.verbose) for name, result in results.items()])
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(compare, name, options.timeout) for name in names if name not in results]
        for done in concurrent.futures.as_completed(waiting):
            name, count, differing = done.result()
            results[name] = (count, differing)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps([name, count, differing]) + "\n")
            bad = report(name, count, differing, options.verbose) or bad
    if options.write:
        (ROOT / "docs" / "cpython-tests.md").write_text(table(results))
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        faulthandler.enable()
        run_module(sys.argv[2], sys.argv[3] == "compiled", set(json.loads(sys.argv[4])))
        sys.stdout = sys.__stdout__
        os._exit(0)
    sys.exit(main())
