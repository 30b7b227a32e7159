"""Documents that are made from the sources are up to date, and name files that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif("OXYFUEL_FRAME_TESTING" not in os.environ, reason="OXYFUEL_FRAME_TESTING names the folder of the module")
def test_instruction_table():
    done = subprocess.run([sys.executable, ROOT / "tools" / "instruction_table", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_figure():
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / "figure.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


NAMED_FILE = re.compile(r"`((?:[\w.-]+/)+[\w-]+\.(?:h|cpp|cc|py|md|txt))(?:::\w+)?`")


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(document):
    """A path is given from the root, from src, or from the folder of the layer whose page it is."""
    places = [ROOT, ROOT / "src", ROOT / "tests", ROOT / "src" / document.stem, ROOT / "docs"]
    names = {name for name in NAMED_FILE.findall(document.read_text()) if not name.startswith(("out/", "kernels/"))}
    missing = sorted(name for name in names if not any((place / name).exists() for place in places))
    assert not missing


LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    missing = sorted(link for link in set(LINK.findall(document.read_text())) if not (document.parent / link).exists())
    assert not missing


def rooms():
    text = (ROOT / "CMakeLists.txt").read_text()
    for layer, names in re.findall(r"oxyfuel_layer\((\w+)[^)]*ROOMS ([\w ]+)\)", text):
        for room in names.split():
            yield layer, room


@pytest.mark.parametrize(("layer", "room"), list(rooms()))
def test_pages_of_layers_name_their_rooms(layer, room):
    texts = [page.read_text() for page in (ROOT / "docs" / "layers").glob("*.md")]
    page = next(text for text in texts if re.match(rf"# [^:\n]*\b{layer}\b", text))
    assert re.search(rf"`(?:{layer}/)?{room}`", page)
