#!/usr/bin/env python3
"""Memory-bound programs on a GPU in four sizes each, beside eager and torch.compile: how near are they to what a copy moves?

    python benchmarks/gpu/memory_bound.py [NAME...] [--peer] [--sizes 0 1 2 3] [--json FILE]
    python benchmarks/gpu/memory_bound.py --device cpu          # without a GPU: that all programs run, in the smallest size

A time is the device's: an event before and one behind the call, which the host has enqueued while the device was kept busy. The
ways take turns, and a time is the mean of the middle half of all rounds. The L2 cache is overwritten before each call. "copy" is the
share of a copy's bandwidth: bytes of inputs and results, each once, divided by the time. A backward pass is timed without the
forward pass; its bytes are those of what it must read (the gradient and what the formula needs) and of the gradients. --peer adds
torch.compile, whose kernels several processes compile beforehand. --twice compiles and measures that once more, too: what would a
program with the same kernels as torch.compile's get?
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import torch
import torch.nn.functional as F

import oxyfuel

SIZES = (1 << 16, 1 << 20, 1 << 24, 1 << 27)  # elements of the largest tensor
LARGE = (2, 3)  # of them: those for which the bandwidth counts
WIDTH = 1024
CLASSES = 8192
COPY_BYTES = 1 << 30
ROUNDS, WARM_UP = 32, 4
BUSY_CYCLES = 4_000_000  # some milliseconds
half, single = torch.bfloat16, torch.float32


@dataclass
class Program:
    function: Callable
    inputs: list
    differentiated: list = field(default_factory=list)  # numbers of inputs; then the backward pass is timed
    read: list | None = None  # tensors that a backward pass must read beside the gradient


def tensor(*sizes, dtype=half, device):
    return torch.randn(sizes, device=device).to(dtype)


def rows_of(count, width=WIDTH):
    return max(count // width, 1)


PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def pointwise(name, function, operands=1, dtype=half):
    """A program of tensors of rows and columns."""
    def make(count, device):
        return Program(function, [tensor(rows_of(count), WIDTH, dtype=dtype, device=device) for _ in range(operands)])
    PROGRAMS[name] = make


pointwise("add", lambda a, b: a + b, 2)
pointwise("add_float", lambda a, b: a + b, 2, single)
pointwise("add_relu", lambda a, b: F.relu(a + b), 2)
pointwise("gelu", F.gelu)
pointwise("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"))
pointwise("silu_gate", lambda a, b: F.silu(a) * b, 2)
pointwise("sigmoid_tanh", lambda x: torch.sigmoid(x) * torch.tanh(x))
pointwise("chain_of_ten", lambda x: ((((x * 2 + 1).relu() - 0.5) * x).abs() + 1).sqrt().sin() * 3 - x)
pointwise("three_results", lambda a, b: (a + b, a * b, a - b), 2)
pointwise("to_float", lambda x: x.float() * 2)
pointwise("to_half", lambda x: x.to(half) + 1, 1, single)
pointwise("clamp_where", lambda a, b: torch.where(a > 0, a.clamp(max=2), b), 2)
pointwise("erf_exp_log", lambda x: torch.erf(x) + torch.log1p(torch.exp(-x.abs())), 1, single)
pointwise("lerp_addcmul", lambda a, b, c: torch.addcmul(torch.lerp(a, b, 0.3), b, c, value=0.5), 3, single)
pointwise("softmax", lambda x: F.softmax(x, -1))
pointwise("softmax_float", lambda x: F.softmax(x, -1), 1, single)
pointwise("log_softmax", lambda x: F.log_softmax(x, -1))
pointwise("scaled_softmax", lambda x: F.softmax(x.float() * 0.125, -1).to(half))
pointwise("logsumexp", lambda x: torch.logsumexp(x.float(), -1))
pointwise("row_sum", lambda x: x.sum(-1))
pointwise("row_sum_float", lambda x: x.sum(-1), 1, single)
pointwise("row_mean_square", lambda x: x.float().square().mean(-1))
pointwise("row_max", lambda x: x.amax(-1))
pointwise("row_argmax", lambda x: x.argmax(-1))
pointwise("row_var", lambda x: x.float().var(-1))
pointwise("row_norm", lambda x: x / x.float().norm(dim=-1, keepdim=True).to(half))
pointwise("column_sum", lambda x: x.sum(0))
pointwise("column_sum_float", lambda x: x.sum(0), 1, single)
pointwise("column_mean_var", lambda x: torch.var_mean(x.float(), 0))
pointwise("column_max", lambda x: x.amax(0))
pointwise("whole_sum", lambda x: x.float().sum())
pointwise("mse", lambda a, b: F.mse_loss(a.float(), b.float()), 2)
pointwise("dropout", lambda x: F.dropout(x, 0.1))
pointwise("dropout_add", lambda a, b: F.dropout(a, 0.1) + b, 2)
pointwise("transpose", lambda x: x.t().contiguous())
pointwise("transpose_float", lambda x: x.t().contiguous(), 1, single)
pointwise("transpose_add", lambda a, b: a + b.reshape(b.shape[1], b.shape[0]).t(), 2)
pointwise("cat", lambda a, b: torch.cat([a, b], 1), 2)
pointwise("split_multiply", lambda x: x[:, : WIDTH // 2] * x[:, WIDTH // 2 :])
pointwise("roll", lambda x: x.roll(3, 1))
pointwise("pad", lambda x: F.pad(x, (1, 7)))
pointwise("flip", lambda x: x.flip(1) + 1)
pointwise("cumsum", lambda x: x.float().cumsum(-1), 1)
pointwise("rms_norm", lambda x: F.rms_norm(x, (WIDTH,)))


@program
def wide_column_sum(count, device):
    """As the gradient of the bias in a model's feed-forward layers."""
    return Program(lambda x: x.sum(0), [tensor(rows_of(count, 3 * WIDTH), 3 * WIDTH, device=device)])


@program
def layer_norm(count, device):
    x, w, b = tensor(rows_of(count), WIDTH, device=device), tensor(WIDTH, device=device), tensor(WIDTH, device=device)
    return Program(lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b), [x, w, b])


@program
def add_layer_norm(count, device):
    x, y = (tensor(rows_of(count), WIDTH, device=device) for _ in range(2))
    w, b = tensor(WIDTH, device=device), tensor(WIDTH, device=device)
    return Program(lambda x, y, w, b: (x + y, F.layer_norm(x + y, (WIDTH,), w, b)), [x, y, w, b])


@program
def layer_norm_backward(count, device):
    made = layer_norm(count, device)
    return Program(made.function, made.inputs, [0, 1, 2], [made.inputs[0]])


@program
def rms_norm_backward(count, device):
    x, w = tensor(rows_of(count), WIDTH, device=device), tensor(WIDTH, device=device)
    return Program(lambda x, w: F.rms_norm(x, (WIDTH,), w), [x, w], [0, 1], [x])


@program
def softmax_backward(count, device):
    x = tensor(rows_of(count), WIDTH, device=device)
    return Program(lambda x: F.softmax(x, -1), [x], [0], [x])


@program
def gelu_backward(count, device):
    x = tensor(rows_of(count), WIDTH, device=device)
    return Program(F.gelu, [x], [0], [x])


@program
def bias_gelu_backward(count, device):
    x, b = tensor(rows_of(count), WIDTH, device=device), tensor(WIDTH, device=device)
    return Program(lambda x, b: F.gelu(x + b), [x, b], [0, 1], [x])


def images(count, device):
    """Channels last, 64 channels of 32 x 32 elements."""
    return tensor(max(count >> 16, 1), 64, 32, 32, device=device).to(memory_format=torch.channels_last)


@program
def group_norm(count, device):
    x, w, b = images(count, device), tensor(64, device=device), tensor(64, device=device)
    return Program(lambda x, w, b: F.silu(F.group_norm(x, 8, w, b)), [x, w, b])


@program
def group_norm_backward(count, device):
    x = tensor(max(count >> 16, 1), 64, 32, 32, device=device)
    w, b = tensor(64, device=device), tensor(64, device=device)
    return Program(lambda x, w, b: F.group_norm(x, 8, w, b), [x, w, b], [0, 1, 2], [x])


@program
def batch_norm(count, device):
    x = images(count, device)
    w, b, m, v = (tensor(64, dtype=single, device=device).abs() + 1 for _ in range(4))
    return Program(lambda x, w, b, m, v: F.relu(F.batch_norm(x, m, v, w, b)), [x, w, b, m, v])


@program
def max_pool(count, device):
    return Program(lambda x: F.max_pool2d(x, 3, 2, 1), [images(count, device)])


@program
def cross_entropy(count, device):
    rows = rows_of(count, CLASSES)
    x, y = tensor(rows, CLASSES, device=device), torch.randint(0, CLASSES, (rows,), device=device)
    return Program(lambda x, y: F.cross_entropy(x.float(), y), [x, y])


@program
def cross_entropy_backward(count, device):
    made = cross_entropy(count, device)
    return Program(made.function, made.inputs, [0], made.inputs)


@program
def gather_rows(count, device):
    rows = rows_of(count)
    return Program(lambda x, i: x[i], [tensor(rows, WIDTH, device=device), torch.randperm(rows, device=device)])


@program
def gather_elements(count, device):
    rows = rows_of(count)
    i = torch.randint(0, WIDTH, (rows, WIDTH), device=device)
    return Program(lambda x, i: torch.gather(x, 1, i), [tensor(rows, WIDTH, device=device), i])


@program
def embedding_scaled(count, device):
    """A table that is read as a whole, each row once."""
    rows = rows_of(count)
    return Program(lambda i, w: F.embedding(i, w) * 32, [torch.randperm(rows, device=device), tensor(rows, WIDTH, device=device)])


def compiled_call(made, way):
    """A call of the program in a way: the forward pass, or the backward pass of a forward pass that has been done."""
    function = way(made.function)
    if not made.differentiated:
        def forward():
            with torch.no_grad():
                return function(*made.inputs)
        return forward
    inputs = [t.detach().clone() for t in made.inputs]
    for k in made.differentiated:
        inputs[k].requires_grad_()
    result = function(*inputs)
    gradient = torch.ones_like(result)
    leaves = [inputs[k] for k in made.differentiated]
    return lambda: torch.autograd.grad(result, leaves, gradient, retain_graph=True)


def tensors_in(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def moved_bytes(made, results):
    if not made.differentiated:
        return bytes_of(made.inputs) + bytes_of(results)
    gradient = made.function(*made.inputs)
    return bytes_of([gradient, *made.read]) + bytes_of(results)


class Clock:
    def __init__(self, written):
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        self.written = written

    def once(self, call):
        self.flush.zero_()
        if not self.written:
            self.flush.amax()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(BUSY_CYCLES)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return 1000 * start.elapsed_time(end)

    def microseconds(self, calls):
        """The time of each call on the device, by its name."""
        for _ in range(WARM_UP):
            for call in calls.values():
                call()
        times = {way: [] for way in calls}
        for _ in range(ROUNDS):
            for way, call in calls.items():
                times[way].append(self.once(call))
        return {way: statistics.mean(sorted(taken)[ROUNDS // 4 : -ROUNDS // 4]) for way, taken in times.items()}


def close(got, expected):
    return all(torch.allclose(a.float(), b.float(), rtol=3e-2, atol=3e-2 * max(1.0, b.float().abs().max().item()))
               for a, b in zip(tensors_in(got), tensors_in(expected), strict=True))


def measure(name, size, arguments, clock, bandwidth):
    torch._dynamo.reset()
    oxyfuel.reset()
    torch.manual_seed(0)
    made = PROGRAMS[name](SIZES[size], arguments.device)
    ways = {"eager": lambda f: f, "ours": oxyfuel.compile}
    if arguments.peer:
        ways["peer"] = lambda f: torch.compile(f, dynamic=False)
    if arguments.twice:
        ways["peer again"] = lambda f: torch.compile(lambda *inputs: f(*inputs), dynamic=False)  # other code, so it is compiled anew
    row = {"program": name, "size": size}
    calls = {way: compiled_call(made, compile) for way, compile in ways.items()}
    results = {}
    for way, call in calls.items():
        torch.manual_seed(1)
        results[way] = call()
    row["right"] = close(results["ours"], results["eager"])
    row["bytes"] = moved_bytes(made, tensors_in(results["eager"]))
    del results
    if clock:
        row.update(clock.microseconds(calls))
        row["copy"] = row["bytes"] / row["ours"] / bandwidth
    row["in eager"] = oxyfuel.metrics()["calls_eager"]
    return row


def prepare_peer(arguments, processes=12):
    """Fills torch.compile's caches on disk, in several processes."""
    jobs = [(name, size) for name in arguments.names for size in arguments.sizes]
    begin = time.monotonic()
    workers = []
    environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1")
    for k in range(processes):
        text = json.dumps(jobs[k::processes])
        workers.append(subprocess.Popen([sys.executable, __file__, "--prepare", text], env=environment, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL))
    for worker in workers:
        worker.wait()
    print(f"torch.compile has compiled {len(jobs)} programs in {time.monotonic() - begin:.0f} s", flush=True)


def prepare(jobs):
    for name, size in jobs:
        torch._dynamo.reset()
        made = PROGRAMS[name](SIZES[size], "cuda")
        compiled_call(made, lambda f: torch.compile(f, dynamic=False))()
        del made
        torch.cuda.empty_cache()


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def shares_of(ratios):
    return ", ".join(f"at least {least} for {sum(r >= least for r in ratios) / len(ratios):.0%}" for least in (0.98, 0.995, 1))


def print_summary(rows):
    large = [r for r in rows if r["size"] in LARGE and "copy" in r]
    if large:
        print(f"\nlarge sizes: {mean([r['copy'] for r in large]):.2f} of a copy's bandwidth in the geometric mean")
    if timed := [r for r in rows if "ours" in r]:
        slower = [f"{r['program']} {r['size']}" for r in timed if r["ours"] > 1.02 * r["eager"]]
        print(f"slower than eager by more than 2 %: {', '.join(slower) or 'none'}")
    if beside := [r for r in rows if "peer" in r]:
        ratios = [r["peer"] / r["ours"] for r in beside]
        behind = sorted((r["peer"] / r["ours"], f"{r['program']} {r['size']}") for r in beside)
        print(f"torch.compile / ours: {mean(ratios):.2f} in the geometric mean, {shares_of(ratios)}; "
              f"large sizes {shares_of([r['peer'] / r['ours'] for r in beside if r['size'] in LARGE])}; "
              f"most behind: {', '.join(f'{n} {r:.2f}' for r, n in behind[:12])}")
    if again := [r for r in rows if "peer again" in r]:
        print(f"torch.compile / the same once more: {shares_of([r['peer'] / r['peer again'] for r in again])}")
    if wrong := [f"{r['program']} {r['size']}" for r in rows if not r["right"] or r["in eager"]]:
        print("wrong, or in eager:", ", ".join(wrong))
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(range(len(SIZES))))
    parser.add_argument("--peer", action="store_true", help="torch.compile beside")
    parser.add_argument("--twice", action="store_true", help="torch.compile is compiled and measured twice (with --peer)")
    parser.add_argument("--written", action="store_true", help="leave written lines in the L2 cache, which calls have to write back")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--prepare", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.prepare:
        return prepare(json.loads(arguments.prepare))
    if arguments.twice and not arguments.peer:
        parser.error("--twice needs --peer")
    clock = bandwidth = None
    if arguments.device == "cpu":
        arguments.sizes = [0]
    else:
        clock = Clock(arguments.written)
        source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        bandwidth = 2 * COPY_BYTES / clock.microseconds({"copy": lambda: target.copy_(source)})["copy"]
        del source, target
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, a copy moves {bandwidth / 1e3:.0f} GB/s. Sizes: {SIZES}")
    if arguments.peer:
        prepare_peer(arguments)
    print("| program | " + " | ".join(f"size {s}: eager, ours{', torch.compile' if arguments.peer else ''} (copy)" for s in arguments.sizes)
          + " |\n|---|" + "---|" * len(arguments.sizes))
    rows = []
    for name in arguments.names:
        cells = []
        for size in arguments.sizes:
            row = measure(name, size, arguments, clock, bandwidth)
            rows.append(row)
            times = [f"{row[way]:.1f}" for way in ("eager", "ours", "peer") if way in row]
            cells.append(", ".join(times) + (f" ({row['copy']:.2f})" if "copy" in row else ""))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    right = print_summary(rows)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
