"""What a precompiled header brings does not count: tools/check_includes on small trees."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "check_includes"
COMPILER = shutil.which("c++")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no compiler")


@pytest.fixture
def check(tmp_path):
    """check({file: text}, *arguments): the exit status and what the tool prints of a tree whose files all see <vector>."""
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    (tmp_path / "pch.h").write_text("#include <vector>\n")

    def run(files, *arguments):
        entries = []
        for name, text in files.items():
            file = tmp_path / "src" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            if file.suffix == ".cpp":
                command = f"{COMPILER} -I{tmp_path}/src -std=c++20 -Winvalid-pch -include {tmp_path}/pch.h -o {file}.o -c {file}"
                entries.append({"directory": str(tmp_path), "command": command, "file": str(file)})
        (tmp_path / "build").mkdir(exist_ok=True)
        (tmp_path / "build" / "compile_commands.json").write_text(json.dumps(entries))
        done = subprocess.run([sys.executable, tmp_path / "tools" / "check_includes", *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout

    return run


COMPLETE = "#include <vector>\nstd::vector<int> numbers;\n"
HIDDEN = "std::vector<int> numbers;\n"


def test_a_source_that_lacks_an_include(check):
    status, text = check({"a/sound.cpp": COMPLETE, "a/faulty.cpp": HIDDEN}, "--all")
    assert status == 1
    assert "src/a/faulty.cpp:\n" in text and "sound" not in text
    assert text.endswith("2 files compiled without precompiled headers, 1 lack includes\n")


def test_a_header_is_compiled_with_its_source_or_alone(check):
    files = {
        "a/both.h": "struct Both {};\n",
        "a/both.cpp": '#include "a/both.h"\n',
        "a/alone.h": "#pragma once\n" + HIDDEN,
        "a/user.cpp": '#include <vector>\n\n#include "a/alone.h"\n',
    }
    status, text = check(files, "--all")
    assert status == 1 and "src/a/alone.h:\n" in text
    assert "3 files compiled" in text


def test_chosen_files_and_too_many(check, tmp_path):
    files = {"a/sound.cpp": COMPLETE, "b/faulty.cpp": HIDDEN}
    assert check(files, str(tmp_path / "src" / "a")) == (0, "1 files compiled without precompiled headers, 0 lack includes\n")
    assert check(files, "--all", "--most", "1") == (0, "2 files changed: includes are checked by tools/check_includes --all\n")
