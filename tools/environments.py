"""The environments that `./oxy` works in: a Python and a release of PyTorch, each with a folder for its packages and one to
build in. `.venv/` and `build/` are those of the main Python and the default release."""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torch_release import RELEASES, as_text, newest, oldest, series

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("python3.11", "python3.12", "python3.13")
APT_LOCK_SECONDS = 300

DEFAULT_RELEASE = "2.13.0"
OLDEST_RELEASE, NEWEST_RELEASE = oldest(), newest()

SYSTEM_PACKAGES = (
    "g++ cmake ninja-build ccache lld-19 llvm-19-dev libclang-19-dev libfmt-dev doctest-dev nlohmann-json3-dev "
    "libxxhash-dev libzstd-dev zlib1g-dev ca-certificates"
).split()
BUILD_PACKAGES = ["nanobind", "scikit-build-core>=1.0"]
TRITON = "triton==3.6.0"
TEST_PACKAGES = ["transformers", "pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "expecttest", "pillow", "pyyaml",
                 "huggingface_hub", "safetensors", "rich", "psutil", "matplotlib"]


def say(text):
    print(f"\033[1m[oxy]\033[0m {text}" if sys.stdout.isatty() else f"[oxy] {text}", flush=True)


def fail(text):
    print(f"oxy: {text}", file=sys.stderr, flush=True)
    sys.exit(1)


def run(*command, environment=None, **options):
    """Runs a command in the root and ends the script with its status if it fails."""
    result = subprocess.run([str(part) for part in command], cwd=ROOT, env={**os.environ, **(environment or {})}, **options)
    if result.returncode != 0:
        print(f"oxy: {' '.join(str(part) for part in command)} failed with status {result.returncode}", file=sys.stderr)
        sys.exit(result.returncode if result.returncode > 0 else 1)
    return result


def output_of(*command):
    try:
        return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


# ---- Pythons and releases ---------------------------------------------------------------------------------------


@functools.cache
def name_of(python):
    """The name of a CPython by its path, "python3.11", or "" where there is none."""
    return output_of(python, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])")


def release_in(python):
    """The release of PyTorch that a Python has, or ""."""
    return output_of(python, "-c", "import importlib.metadata as m; print(m.version('torch').split('+')[0])")


@functools.cache
def main_python():
    """A supported CPython: that of `.venv/`, OXYFUEL_PYTHON, the one that runs this script, or the first found."""
    candidates = [ROOT / ".venv" / "bin" / "python", os.environ.get("OXYFUEL_PYTHON"), sys.executable, "/usr/bin/python3",
                  *map(shutil.which, PYTHONS)]
    for python in filter(None, candidates):
        if name_of(python) in PYTHONS:
            return python
    fail("no CPython 3.11, 3.12 or 3.13 found; set OXYFUEL_PYTHON to one")


def find_python(name):
    """The path of the CPython of that name, outside of any virtual environment, or nothing."""
    if name == name_of(main_python()):
        return output_of(main_python(), "-c", "import sys; print(sys._base_executable)")
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{name[len('python'):]}.*/bin/{name}"))
    found = installed[-1] if installed else shutil.which(name)
    return found if found and name_of(found) == name else None


def other_pythons():
    """The names among PYTHONS that are installed, without the main one."""
    return [name for name in PYTHONS if name != name_of(main_python()) and find_python(name)]


def known_release(text):
    """The release that a user means: "2.15.0", or "2.15" for the one that is tested."""
    by_series = {series(release): release for release in RELEASES}
    try:
        release = by_series[series(text)]
    except (KeyError, ValueError):
        fail(f"there is no PyTorch release '{text}' here; there are: {', '.join(RELEASES)}")
    return release if text.count(".") < 2 else text


def chosen_release():
    """What OXYFUEL_TORCH says, or the default."""
    text = os.environ.get("OXYFUEL_TORCH", "").strip()
    return known_release(text) if text else DEFAULT_RELEASE


# ---- environments -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """Where one Python and one release of PyTorch are at work."""

    python: str  # a name among PYTHONS
    release: str

    @property
    def suffix(self):
        parts = [] if self.python == name_of(main_python()) else [self.python]
        return "".join("-" + part for part in (*parts, *([] if self.release == DEFAULT_RELEASE else ["torch-" + self.release])))

    @property
    def venv(self):
        return ROOT / f".venv{self.suffix}"

    @property
    def build(self):
        return ROOT / f"build{self.suffix}"

    @property
    def triton(self):
        """A folder with Triton, for tests. It is none of the environment's own packages, as torch for the CPU has none."""
        return self.venv / "triton"

    @property
    def own_python(self):
        return self.venv / "bin" / "python"

    def __str__(self):
        return f"{self.python} with torch {self.release}"


def chosen_environment():
    return Environment(name_of(main_python()), chosen_release())


def pip_calls(release):
    """What an environment gets, each line one call of pip. Without its dependencies torchvision keeps torch as it is."""
    return ([f"torch=={release}", "numpy"], [*BUILD_PACKAGES, *TEST_PACKAGES],
            ["--no-deps", f"torchvision=={RELEASES[known_release(as_text(series(release)))]}", "timm"])


def stamp_of(environment):
    """A file and its text once the environment has all its packages."""
    key = hashlib.sha256(repr(pip_calls(environment.release)).encode()).hexdigest()
    return environment.venv / "oxyfuel-packages", key


def is_complete(environment):
    stamp, key = stamp_of(environment)
    return stamp.exists() and stamp.read_text() == key


def pip_install(python, packages):
    say("installing Python packages: " + " ".join(packages))
    run(python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar",
        "on" if sys.stdout.isatty() else "off", *packages)


def add_triton(environment):
    """Where it cannot be had, the tests that need it are skipped."""
    if (environment.triton / "triton").is_dir():
        return
    say(f"installing {TRITON} for tests")
    command = [environment.own_python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
               "--target", environment.triton, TRITON]
    if subprocess.run([str(part) for part in command], cwd=ROOT).returncode != 0:
        say(f"{TRITON} cannot be had: tests of kernels for GPUs are skipped")


def make_venv(environment):
    """Makes an environment, or adds what it lacks. A Python that has the release already lends it."""
    if not is_complete(environment):
        if not environment.own_python.exists():
            python = find_python(environment.python) or fail(f"there is no {environment.python} on this machine")
            lends = ["--system-site-packages"] if release_in(python) == environment.release else []
            say(f"creating {environment.venv.name}/ with {python}" + (f" and its torch {environment.release}" if lends else ""))
            run(python, "-m", "venv", *lends, environment.venv)
        for packages in pip_calls(environment.release):
            pip_install(environment.own_python, packages)
        stamp, key = stamp_of(environment)
        stamp.write_text(key)
    add_triton(environment)
    site = output_of(environment.own_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    (Path(site) / "oxyfuel_development.pth").write_text(f"{environment.build / 'package'}\n")


# ---- system packages --------------------------------------------------------------------------------------------


def install_system_packages(names):
    """Installs the Debian packages that are missing. Where there is no apt, what is there has to do."""
    if not shutil.which("dpkg-query"):
        return
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    installed = {line.split()[0] for line in listed.splitlines() if line.endswith(" installed")}
    missing = [name for name in names if name not in installed]
    if not missing:
        return
    prefix = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            fail("these system packages are missing, and there is no sudo: apt-get install " + " ".join(missing))
        prefix = ["sudo"]
    say("installing system packages: " + " ".join(missing))
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    # A fresh machine may still be installing by itself: waits for its lock.
    apt = [*prefix, "apt-get", "-q", "-o", f"DPkg::Lock::Timeout={APT_LOCK_SECONDS}"]
    run(*apt, "update", environment=quiet)
    run(*apt, "install", "-y", "--no-install-recommends", *missing, environment=quiet)


def python_packages_of_the_system(python):
    """Debian splits the headers, venv and the test-suite's modules off its own Python."""
    if not os.path.realpath(python).startswith("/usr/bin/"):
        return []
    name = os.path.basename(os.path.realpath(python))
    return [f"{name}-dev", f"{name}-venv", f"lib{name}-testsuite"]


def install_what_building_needs():
    install_system_packages(SYSTEM_PACKAGES + python_packages_of_the_system(str(main_python())))
