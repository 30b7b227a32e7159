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


@pytest.mark.parametrize("version", ["2.10.0", "2.16.0", "3.0.0"])
def test_a_release_that_is_not_supported(tmp_path, version):
    done = run(TOOLS / "torch_release.py", paths=[torch_of(tmp_path, version, "")])
    assert done.returncode == 1 and done.stdout == ""
    assert "builds against torch 2.11 to 2.15" in done.stderr and version in done.stderr


def test_the_package_asks_for_its_release():
    [metadata] = PACKAGE.glob("oxyfuel-*.dist-info/METADATA")
    assert f"Requires-Dist: torch=={'.'.join(TORCH_RELEASE.split('.')[:2])}.*" in metadata.read_text().splitlines()


def test_releases_by_name(monkeypatch, capsys):
    assert environments.known_release("2.15") == "2.15.0"
    assert environments.known_release("2.14.0") == "2.14.0"
    monkeypatch.delenv("OXYFUEL_TORCH", raising=False)
    assert environments.chosen_release() == environments.DEFAULT_RELEASE
    for unknown in ("2.10", "new"):
        monkeypatch.setenv("OXYFUEL_TORCH", unknown)
        with pytest.raises(SystemExit):
            environments.chosen_release()
        assert f"no PyTorch release '{unknown}'" in capsys.readouterr().err


def test_each_environment_has_folders_of_its_own():
    python = environments.name_of(environments.main_python())
    other = next(name for name in environments.PYTHONS if name != python)
    default = environments.Environment(python, environments.DEFAULT_RELEASE)
    assert (default.venv.name, default.build.name) == (".venv", "build")
    assert environments.Environment(python, "2.15.0").build.name == "build-torch-2.15.0"
    assert environments.Environment(other, "2.15.0").venv.name == f".venv-{other}-torch-2.15.0"
