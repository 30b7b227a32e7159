"""Which release of PyTorch is built against, and that the package refuses to run on another one."""

import os
import subprocess
import sys
from pathlib import Path

import oxyfuel
import pytest
from oxyfuel._build import TORCH_RELEASE

TOOLS = Path(__file__).resolve().parents[3] / "tools"
sys.path.insert(0, str(TOOLS))
import environments  # noqa: E402
import torch_release  # noqa: E402

ROOT = TOOLS.parent
PACKAGE = Path(oxyfuel.__file__).parents[1]


def torch_of(folder, version, source):
    """A folder with a package `torch` of that version and source."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(source)
    metadata = folder / f"torch-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    return folder


def run(*command, paths):
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, env=variables)


def test_another_release_is_refused_in_one_sentence(tmp_path):
    other = torch_of(tmp_path, "2.99.1", "__version__ = '2.99.1+cpu'\n")
    done = run("-c", "import oxyfuel", paths=[other, PACKAGE])
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    built_for = ".".join(TORCH_RELEASE.split(".")[:2])
    assert last.startswith(f"ImportError: this oxyfuel was built for PyTorch {built_for} and cannot run on PyTorch 2.99.1+cpu: ")
    assert f"torch=={built_for}.*" in last


def test_another_patch_release_is_not_refused(tmp_path):
    built_for = ".".join(TORCH_RELEASE.split(".")[:2])
    other = torch_of(tmp_path, f"{built_for}.99", f"__version__ = '{built_for}.99'\n")
    done = run("-c", "from oxyfuel import _torch_release", paths=[other, PACKAGE])
    assert "built for PyTorch" not in done.stderr


def test_a_torch_that_cannot_be_imported_is_found(tmp_path):
    folder = torch_of(tmp_path, "2.11.0+cu130", "raise ImportError('libcudart.so.13')\n")
    done = run(TOOLS / "torch_release.py", paths=[folder])
    assert done.stdout.splitlines() == [str(folder / "torch"), "2.11.0"], done.stderr


FIRST, LAST = (torch_release.series(text) for text in (torch_release.oldest(), torch_release.newest()))
BEFORE, BEHIND = f"{FIRST[0]}.{FIRST[1] - 1}", f"{LAST[0]}.{LAST[1] + 1}"


@pytest.mark.parametrize("version", [f"{BEFORE}.0", f"{BEHIND}.0", f"{LAST[0] + 1}.0.0"])
def test_a_release_that_is_not_supported(tmp_path, version):
    done = run(TOOLS / "torch_release.py", paths=[torch_of(tmp_path, version, "")])
    assert done.returncode == 1 and done.stdout == ""
    assert f"builds against torch {torch_release.supported()}" in done.stderr and version in done.stderr


SUPPORTED = f"PyTorch {torch_release.supported()}"
RANGE = f'"torch>={torch_release.as_text(FIRST)},<{BEHIND}"'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *((text, SUPPORTED) for text in ("README.md", "docs/building.md", "docs/releases.md")),
        ("pyproject.toml", RANGE),
        *(("docs/releases.md", f"\n| {release}") for release in torch_release.RELEASES),
    ],
)
def test_texts_name_the_releases(text, told):
    """Where the oldest and the newest release are told, it is these."""
    assert told in (ROOT / text).read_text(), f"{text} lacks {told.strip()!r}"


def test_the_package_asks_for_its_release():
    [metadata] = PACKAGE.glob("oxyfuel-*.dist-info/METADATA")
    assert f"Requires-Dist: torch=={'.'.join(TORCH_RELEASE.split('.')[:2])}.*" in metadata.read_text().splitlines()


def test_releases_by_name(monkeypatch, capsys):
    newest = torch_release.newest()
    series = torch_release.as_text(torch_release.series(newest))
    assert environments.known_release(series) == newest
    assert environments.known_release(f"{series}.99") == f"{series}.99"
    monkeypatch.delenv("OXYFUEL_TORCH", raising=False)
    assert environments.chosen_release() == environments.DEFAULT_RELEASE
    for unknown in (BEFORE, "new"):
        monkeypatch.setenv("OXYFUEL_TORCH", unknown)
        with pytest.raises(SystemExit):
            environments.chosen_release()
        assert f"no PyTorch release '{unknown}'" in capsys.readouterr().err


def test_each_environment_has_folders_of_its_own():
    python = environments.name_of(environments.main_python())
    other = next(name for name in environments.PYTHONS if name != python)
    default = environments.Environment(python, environments.DEFAULT_RELEASE)
    assert (default.venv.name, default.build.name) == (".venv", "build")
    another = next(release for release in torch_release.RELEASES if release != environments.DEFAULT_RELEASE)
    assert environments.Environment(python, another).build.name == f"build-torch-{another}"
    assert environments.Environment(other, another).venv.name == f".venv-{other}-torch-{another}"
