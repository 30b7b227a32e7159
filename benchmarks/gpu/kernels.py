#!/usr/bin/env python3
"""Checks and times the GPU kernels of tests/golden/triton, against eager and torch.compile, on a machine with a GPU, torch
and Triton; nothing of oxyfuel has to be built there.

    python benchmarks/gpu/kernels.py [NAME...] [--no-compile] [--warps] [--json FILE]
    python benchmarks/gpu/kernels.py --dry-run          # without a GPU: everything but the device's part

Each golden text has a graph and the plan that oxyfuel makes of it, as a Python program. A time is the median of replays of
a captured CUDA graph, with the L2 cache overwritten before each: what the device needs, without any host. "bytes" are those
of inputs and outputs, each once: what has to move. "copy" is their share of the bandwidth that a copy of 1 GiB reaches.
--warps also times every kernel with half and twice the warps that the cost model chose.
"""

import argparse
import importlib.util
import json
import math
import re
import sys
import tempfile
from pathlib import Path

import torch

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "triton"
DTYPES = "bool|uint8|int8|int16|int32|int64|float16|bfloat16|float32|float64"
META = re.compile(rf"%(\d+) : ({DTYPES})\[([^\]]*)\](?:\{{strides=\[([^\]]*)\]\}})?")
CLASSES = 32000  # labels and ids are below
# Bytes of an input that a program does not read whole, by program and number of the input.
READ = {"embedding": {0: 16 * 512 * 1024 * 2}, "cross_entropy": {}}
TOLERANCES = {torch.float64: 1e-7, torch.float32: 2e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}


def numbers(text):
    return [int(n) for n in text.split(",") if n.strip()]


def inputs_of(graph):
    """(dtype, sizes, strides) of each input of a graph's text."""
    found = []
    for _, dtype, sizes, strides in META.findall(graph.partition(") {")[0]):
        sizes = numbers(sizes)
        strides = numbers(strides) if strides else list(torch.empty(sizes, device="meta").stride())
        found.append((getattr(torch, dtype), sizes, strides))
    return found


def eager_function(graph):
    """The graph as a function of its inputs that calls torch's operators."""
    head, _, body = graph.partition(") {")
    lines = [f"def program({', '.join(f'v{n}' for n, *_ in META.findall(head))}):"]
    for line in body.splitlines():
        line = line.strip()
        if line.startswith("return"):
            lines.append("    return [" + re.sub(r"%(\d+)", r"v\1", line.removeprefix("return")) + "]")
        elif match := re.match(r"(.*?) = aten::([\w.]+)\((.*)\)$", line):
            results = ", ".join(f"v{n}" for n, *_ in META.findall(match[1]))
            arguments = re.sub(r"%(\d+)", r"v\1", match[3])
            arguments = re.sub(rf"(?<![\w.])({DTYPES})(?![\w\[])", r"torch.\1", arguments)
            arguments = re.sub(r"memory_format=(contiguous|preserve)", r"memory_format=torch.\1_format", arguments)
            arguments = re.sub(r"memory_format=channels", r"memory_format=torch.channels", arguments)
            overload = match[2] if "." in match[2] else match[2] + ".default"
            lines.append(f"    {results} = torch.ops.aten.{overload}({arguments})")
    names = {"torch": torch, "cpu": "cuda" if torch.cuda.is_available() else "cpu"}  # what graphs call the device
    exec("\n".join(lines), names)
    return names["program"]


def make_input(dtype, sizes, strides, positive, device):
    tensor = torch.empty_strided(sizes, strides, dtype=dtype, device=device)
    if device == "meta":
        return tensor
    if dtype == torch.bool:
        return tensor.copy_(torch.rand(sizes, device=device) < 0.8)
    if not dtype.is_floating_point:
        return tensor.copy_(torch.randint(0, CLASSES, sizes, device=device))
    return tensor.uniform_(0.5, 1.5) if positive or len(sizes) == 1 else tensor.normal_()


def load_script(name, text, folder):
    path = Path(folder) / f"golden_{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Clock:
    """Times functions on the device, each replayed from a captured graph on a cold cache."""

    def __init__(self):
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def microseconds(self, function, capture=True):
        for _ in range(3):
            function()
        torch.cuda.synchronize()
        replay = function
        if capture:
            try:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    function()
                replay = graph.replay
            except RuntimeError:  # it asks the device for something: then with its launches
                torch.cuda.synchronize()
        times = []
        for k in range(25):
            self.flush.zero_()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            replay()
            end.record()
            torch.cuda.synchronize()
            if k >= 5:
                times.append(1000 * start.elapsed_time(end))
        return sorted(times)[len(times) // 2]

    def copy_bandwidth(self):
        """Bytes a microsecond of a copy of 1 GiB, both ways counted."""
        source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        return 2 * (1 << 30) / self.microseconds(lambda: target.copy_(source))


def moved_bytes(name, inputs, outputs):
    read = READ.get(name, {})
    total = sum(read.get(k, t.untyped_storage().nbytes()) for k, t in enumerate(inputs))
    return total + sum(t.numel() * t.element_size() for t in outputs)


def difference(got, expected):
    """The largest difference, in units of what is tolerated; more than 1 is wrong."""
    worst = 0.0
    for a, b in zip(got, expected, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return math.inf
        if not b.dtype.is_floating_point:
            worst = max(worst, 0.0 if torch.equal(a, b) else math.inf)
            continue
        # In pieces: a tensor of some gigabytes has no room for its copies.
        for x, y in zip(a.reshape(-1).split(1 << 26), b.reshape(-1).split(1 << 26)):
            scale = y.float().abs().nan_to_num(0, 0, 0).max().clamp(min=1e-6).item()
            off = (x.float() - y.float()).abs().masked_fill_(x.isnan() & y.isnan(), 0).masked_fill_(x == y, 0).max().item()
            worst = max(worst, off / (TOLERANCES[b.dtype] * scale) if not math.isnan(off) else math.inf)
    return worst


def other_warps(module, run, clock):
    """Times of the program with other numbers of warps, by kernel: {"name 4 -> 8": microseconds}."""
    found = {}
    for name, launch in list(vars(module).items()):
        if not name.endswith("_launch"):
            continue
        chosen = launch["options"]["num_warps"]
        for warps in (chosen // 2, chosen * 2):
            if not 1 <= warps <= 32:
                continue
            launch["options"]["num_warps"] = warps
            found[f"{name.removesuffix('_launch')} {chosen} -> {warps}"] = clock.microseconds(run)
        launch["options"]["num_warps"] = chosen
    return found


def measure(name, text, options, clock, bandwidth, folder):
    graph, _, script = text.partition("----\n")
    device = "meta" if options.dry_run else "cuda"
    torch.manual_seed(0)
    inputs = [make_input(*i, name == "adamw", device) for i in inputs_of(graph)]
    module, eager = load_script(name, script, folder), eager_function(graph)
    row = {"program": name, "kernels": sum(n.endswith("_launch") for n in vars(module))}
    expected = eager(*inputs)
    row["bytes"] = moved_bytes(name, inputs, expected)
    if options.dry_run:
        return row

    def run():
        return module.run(inputs)

    row["difference"] = difference(run(), expected)
    del expected
    row["ours"] = clock.microseconds(run)
    row["copy"] = row["bytes"] / row["ours"] / bandwidth
    row["eager"] = clock.microseconds(lambda: eager(*inputs))
    if not options.no_compile:
        torch._dynamo.reset()
        compiled = torch.compile(eager)
        row["compile"] = clock.microseconds(lambda: compiled(*inputs))
    if options.warps:
        row["other warps"] = other_warps(module, run, clock)
    return row


def print_row(row):
    def cell(key, width, form):
        return f"{row[key]:{width}{form}}" if key in row else " " * (width - 1) + "-"

    ratio = f"{row['compile'] / row['ours']:8.2f}" if "compile" in row else "       -"
    print(f"{row['program']:26}{row['kernels']:3}{row['bytes'] / 1e6:10.1f}", cell("ours", 9, ".1f"), cell("copy", 7, ".2f"),
          cell("eager", 10, ".1f"), cell("compile", 12, ".1f"), ratio, cell("difference", 12, ".2g"), sep="", flush=True)
    for name, time in row.get("other warps", {}).items():
        print(f"    {time / row['ours']:6.2f} of the time with warps {name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--warps", action="store_true", help="time other numbers of warps, too")
    parser.add_argument("--dry-run", action="store_true", help="no device: read the texts, run eager on meta tensors")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    files = [f for f in sorted(GOLDEN.glob("*.txt")) if not options.names or f.stem in options.names]
    # Eager has none of our own operators. How fast dropout is shows in the models' training.
    files = [f for f in files if "oxyfuel::" not in f.read_text()]
    clock = bandwidth = None
    if not options.dry_run:
        clock = Clock()
        bandwidth = clock.copy_bandwidth()
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, a copy moves {bandwidth / 1e3:.0f} GB/s")
    print(f"{'program':26}{'k':>3}{'MB':>10}{'ours us':>9}{'copy':>7}{'eager us':>10}{'compile us':>12}{'c/ours':>8}{'difference':>12}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            try:
                rows.append(measure(file.stem, file.read_text(), options, clock, bandwidth, folder))
                print_row(rows[-1])
            except Exception as error:  # one program that fails is a row, and the others are measured
                rows.append({"program": file.stem, "error": repr(error)})
                print(f"{file.stem:26} {error!r}"[:400], flush=True)
            if not options.dry_run:
                torch.cuda.empty_cache()
    timed = [r for r in rows if "copy" in r]
    if timed:
        mean = math.exp(sum(math.log(r["copy"]) for r in timed) / len(timed))
        print(f"geometric mean of the share of a copy's bandwidth: {mean:.2f}")
    wrong = [r["program"] for r in rows if "error" in r or r.get("difference", 0) > 1]
    if wrong:
        print("wrong:", ", ".join(wrong))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
