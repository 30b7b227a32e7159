"""tools/check_layers finds what it is to find, and passes this tree."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LAYERS = """
oxyfuel_layer(base PLAIN)
oxyfuel_layer(graph PLAIN DEPENDS base)
oxyfuel_layer(backend PLAIN DEPENDS graph EXCLUDE x)
oxyfuel_layer(trace TORCH DEPENDS graph)
"""


def check(folder):
    result = subprocess.run([sys.executable, ROOT / "tools" / "check_layers", folder], capture_output=True, text=True)
    return result.returncode, result.stdout


def tree(tmp_path, files, layers=LAYERS):
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "CMakeLists.txt").write_text(layers)
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_this_tree():
    assert check(ROOT) == (0, "every include is to a lower layer or room\n")


def test_lower_layers_direct_and_through_others(tmp_path):
    files = {"base/a.h": "#include <string>\n", "backend/a.cpp": '#include "base/a.h"\n#include "backend/b.h"\n',
             "backend/cpu/jit/clang/a.cpp": "#include <llvm/IR/Module.h>\n", "trace/a.cpp": "#include <ATen/ATen.h>\n#include <Python.h>\n"}
    assert check(tree(tmp_path, files))[0] == 0


def test_faults(tmp_path):
    files = {"base/a.h": '\n#include "graph/graph.h"\n', "trace/a.cpp": '#include "backend/cpu/jit/jit.h"\n',
             "graph/a.cpp": "#include <ATen/ATen.h>\n#include <Python.h>\n#include <clang/Basic/X.h>\n", "stray/a.h": ""}
    status, text = check(tree(tmp_path, files))
    assert status == 1
    assert sorted(text.splitlines()) == sorted([
        "src/base/a.h:2: includes graph/graph.h: base is not above graph",
        "src/stray/a.h:1: CMakeLists.txt declares no layer stray",
        "src/graph/a.cpp:1: includes ATen/ATen.h: graph is to know no PyTorch",
        "src/graph/a.cpp:2: includes Python.h: graph is to know no Python",
        "src/graph/a.cpp:3: includes clang/Basic/X.h: LLVM belongs to src/backend/cpu/jit/clang",
        "src/trace/a.cpp:1: includes backend/cpu/jit/jit.h: trace is not above backend",
    ])


def test_rooms(tmp_path):
    layers = LAYERS + "oxyfuel_layer(eval TORCH DEPENDS trace\n    ROOMS low high)\n"
    good = {"eval/root.h": "", "eval/low/a.h": '#include "trace/a.h"\n#include "eval/root.h"\n', "eval/high/a.h": '#include "eval/low/a.h"\n#include "eval/high/b.h"\n'}
    assert check(tree(tmp_path / "good", good, layers))[0] == 0
    bad = {"eval/low/a.h": '#include "eval/high/a.h"\n', "eval/other/a.h": "", "eval/a.h": '#include "eval/low/a.h"\n', "eval/high/a.h": '#include "eval/none/a.h"\n'}
    status, text = check(tree(tmp_path / "bad", bad, layers))
    assert status == 1
    assert sorted(text.splitlines()) == [
        "src/eval/a.h:1: includes eval/low/a.h: a.h is not above low",
        "src/eval/high/a.h:1: includes eval/none/a.h: eval has no room none",
        "src/eval/low/a.h:1: includes eval/high/a.h: low is not above high",
        "src/eval/other/a.h:1: eval has no room other",
    ]


def test_what_is_common_to_all_devices(tmp_path):
    layers = "oxyfuel_layer(base PLAIN)\noxyfuel_layer(backend PLAIN DEPENDS base\n  ROOMS shared cpu)\n"
    files = {"backend/shared/a.h": "// What runs at once.\n// Threads of the CPU.\n", "backend/cpu/a.h": "// Threads.\n",
             "base/a.h": "bool f(Device d) { return d.is_cpu(); }\nint g = at::kCUDA;\n"}
    status, text = check(tree(tmp_path, files, layers))
    assert status == 1
    assert sorted(text.splitlines()) == [
        "src/backend/shared/a.h:2: says Threads, which is of one kind of device",
        "src/base/a.h:1: says is_cpu(, which is of one kind of device",
        "src/base/a.h:2: says kCUDA, which is of one kind of device",
    ]


def test_the_release_of_pytorch(tmp_path):
    layers = LAYERS + "oxyfuel_layer(torch_api TORCH)\noxyfuel_layer(runtime TORCH DEPENDS graph torch_api)\n"
    files = {"torch_api/a.h": "#if TORCH_VERSION_MAJOR > 2\n#endif\n", "runtime/a.h": '#include "torch_api/a.h"\n'}
    assert check(tree(tmp_path, files, layers))[0] == 0
    for line in ("#if OXYFUEL_TORCH_AT_LEAST(2, 13)", "#if TORCH_VERSION_MINOR > 12", '#include "torch_api/release.h"'):
        status, text = check(tree(tmp_path, {"runtime/a.h": f"{line}\n"}, layers))
        assert (status, text) == (1, "src/runtime/a.h:1: the release of PyTorch is asked for by src/torch_api only\n")


def test_layers_in_a_circle(tmp_path):
    status, text = check(tree(tmp_path, {}, "oxyfuel_layer(a PLAIN DEPENDS b)\noxyfuel_layer(b PLAIN DEPENDS a)\n"))
    assert status == 1 and "a -> b -> a" in text
