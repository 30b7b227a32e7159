"""`python triton_compiler.py FOLDER ARCHITECTURE...`: compiles each kernel of each script in FOLDER for each architecture
(80, 90) and prints what came of it as JSON: {"script/kernel for 90": {"spilled_bytes", "cubin_bytes", "ptx_loads"} or {"error"}}."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def kernels_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name.removesuffix("_launch"): (getattr(module, name.removesuffix("_launch")), launch) for name, launch in vars(module).items() if name.endswith("_launch")}


def spilled(cubin, architecture):
    """Bytes of the stack that a thread uses, as the assembler noted them in the machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tool = Path(knobs.nvidia.cuobjdump.path)
        text = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    return max(map(int, re.findall(r"STACK:(\d+)", text)), default=0)


def compile_one(kernel, launch, architecture):
    signature = {**launch["signature"], **dict.fromkeys(launch["constants"], "constexpr")}
    pointers = {(k,): [["tt.divisibility", 16]] for k, t in enumerate(launch["signature"].values()) if t.startswith("*")}
    source = ASTSource(kernel, signature, launch["constants"], pointers)
    compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=launch["options"])
    cubin = compiled.asm["cubin"]
    return {"spilled_bytes": spilled(cubin, architecture), "cubin_bytes": len(cubin), "shared": compiled.metadata.shared,
            "loads": sorted(set(re.findall(r"ld\.global\S*", compiled.asm["ptx"])))}


def main(folder, *architectures):
    jobs = [(f"{path.stem}/{name} for {a}", kernel, launch, int(a)) for path in sorted(Path(folder).glob("*.py"))
            for name, (kernel, launch) in kernels_of(path).items() for a in architectures]

    def run(job):
        name, kernel, launch, architecture = job
        try:
            return name, compile_one(kernel, launch, architecture)
        except Exception:
            return name, {"error": traceback.format_exc()}

    with ThreadPoolExecutor(min(4, os.cpu_count())) as pool:
        print(json.dumps(dict(pool.map(run, jobs))))


if __name__ == "__main__":
    main(*sys.argv[1:])
