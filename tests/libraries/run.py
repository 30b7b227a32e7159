"""The tests of installed libraries with every test function compiled: the same outcomes as without.

    python tests/libraries/run.py networkx.classes sympy.polys.tests.test_rings

Runs the tests twice, plain and compiled, prints those with another outcome and exits with 1 if there are any. Tests that
count references see those that guards hold: numpy has three such.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).parent


def outcomes(targets, seconds, compiled):
    """{test: "passed", "failure", "error" or "skipped"} and how long all took."""
    environment = dict(os.environ, OXYFUEL_STRICT="1", PYTHONPATH=str(HERE))
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "--continue-on-collection-errors", "-p", "no:cacheprovider", f"--timeout={seconds}", f"--junitxml={report}"]
        command += ["-p", "compiled_tests"] * compiled + ["--pyargs", *targets]
        subprocess.run(command, env=environment, stdout=sys.stderr)  # which shows how far it is
        if not report.exists():
            sys.exit("pytest made no report; what it printed says why")
        suite = ElementTree.parse(report).getroot().find("testsuite")
    found = {}
    for case in suite.iter("testcase"):
        kinds = [kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None]
        found[f"{case.get('classname')}::{case.get('name')}"] = kinds[0] if kinds else "passed"
    return found, float(suite.get("time"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", help="modules or packages of tests")
    parser.add_argument("--timeout", type=int, default=300, help="seconds that one test may take")
    options = parser.parse_args()
    plain, plain_seconds = outcomes(options.targets, options.timeout, compiled=False)
    compiled, compiled_seconds = outcomes(options.targets, options.timeout, compiled=True)
    if not plain:
        sys.exit("pytest found no test; what it printed says why")
    differing = [test for test in sorted(plain.keys() | compiled.keys()) if plain.get(test) != compiled.get(test)]
    for test in differing:
        print(f"{test}: plain {plain.get(test, 'missing')}, compiled {compiled.get(test, 'missing')}")
    print(f"{len(plain)} tests, {len(differing)} differ; plain {plain_seconds:.0f} s, compiled {compiled_seconds:.0f} s")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
