#!/usr/bin/env python3
"""Calls every operator of PyTorch's own table of samples compiled and in eager, and compares.

    python tests/fuzz/operators.py                      all operators, float32, some samples of each
    python tests/fuzz/operators.py --dtypes float32,bfloat16,int64,bool --samples 0 add mul    all samples of two

Prints what differs and a table: how many operators are native kernels, calls of PyTorch's kernels, or run in eager.
Operators run in a process of their own that is started again if one of them crashes.
"""

import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OXYFUEL_STRICT", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import oxyfuel  # noqa: E402
from devices import device  # noqa: E402
from observation import difference, in_float64, leave_out_stacks, observe  # noqa: E402

# Results that are undefined: memory that nobody wrote, or a basis that is one of many.
UNDEFINED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "svd", "linalg.svd", "svd_lowrank",
    "pca_lowrank", "linalg.eig", "linalg.eigh", "geqrf", "linalg.lu_factor_ex", "linalg.ldl_factor_ex", "torch.ops.aten._efficient_attention_forward",
}

# Eager's kernels write to a given result as if it were contiguous, whatever its strides are.
TAKES_OUT_FOR_CONTIGUOUS = {"nn.functional.avg_pool3d", "nn.functional.gelu", "narrow_copy"}
if device() == "cuda":
    TAKES_OUT_FOR_CONTIGUOUS |= {"nn.functional.avg_pool2d", "_chunk_cat"}


def operators():
    from torch.testing._internal.common_methods_invocations import op_db

    leave_out_stacks()
    return op_db


def name_of(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def copy_of(tree):
    """The same arguments again: tensors that share memory share memory in the copy, strides are kept."""
    storages = {}

    def copy(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if leaf.layout != torch.strided or leaf.dim() > 64 or leaf.is_quantized or type(leaf) is not torch.Tensor:
            return leaf.detach().clone()
        key = leaf.untyped_storage()._cdata
        if key not in storages:
            storages[key] = leaf.untyped_storage().clone()
        made = torch.empty(0, dtype=leaf.dtype, device=leaf.device).set_(storages[key], leaf.storage_offset(), leaf.shape, leaf.stride())
        return made.conj() if leaf.is_conj() else torch._neg_view(made) if leaf.is_neg() else made

    return pytree.tree_map(copy, tree)


def spread(items, count):
    """At most ``count`` of the items, evenly spread (0: all)."""
    items = list(items)
    if not count or len(items) <= count:
        return items
    return [items[i * len(items) // count] for i in range(count)]


class Tally:
    """How an operator's calls ran, and what was wrong with them."""

    def __init__(self):
        self.calls = self.native = self.extern = self.eager = self.raised = 0
        self.fallbacks = collections.Counter()
        self.externs = collections.Counter()
        self.reasons = collections.Counter()
        self.wrong = []

    def stayed_eager(self, expected, metrics):
        """Counts a call that eager refuses or that was not compiled; False if it was compiled."""
        if expected.raised:
            self.raised += 1
        elif metrics["breaks"] or not metrics["calls_compiled"]:
            self.eager += 1
            self.reasons.update([b["reason"] for b in metrics["breaks"]] or ["the plan failed"])
        else:
            return False
        return True

    def kind(self):
        if self.eager:
            return "eager" if not self.native and not self.extern else "partly eager"
        if self.extern:
            return "extern" if not self.native else "partly native"
        return "native" if self.native else "raises"


def compare_call(call, arguments, tally, what, mode=torch.no_grad):
    """One call compiled, twice, and in eager."""
    if any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in pytree.tree_leaves(arguments)):
        return  # nothing to compare
    oxyfuel.reset()
    with mode():
        copies = [copy_of(arguments) for _ in range(3)]
        expected = observe(call, copies[0])
        compiled = oxyfuel.compile(call)
        runs = [observe(compiled, copy) for copy in copies[1:]]
        metrics = oxyfuel.metrics()
        reference = None
        tally.calls += 1
        for i, actual in enumerate(runs):
            found = difference(expected, actual, single=True)
            if found and expected.raised is None:
                reference = reference or observe(call, in_float64(arguments))
                found = difference(expected, actual, reference, single=True)
            if found:
                tally.wrong.append(f"{what}, call {i + 1}: {found}")
                break
    if not tally.stayed_eager(expected, metrics):
        if metrics["extern_calls"]:
            tally.extern += 1
            tally.externs.update(metrics.get("extern_names", {}))
        else:
            tally.native += 1
    tally.fallbacks.update(metrics.get("shape_fallback_names", {}))


def outputs_like(result):
    """Zeros to write a result to: contiguous, transposed, and with gaps."""
    return [torch.zeros_like(result, memory_format=torch.contiguous_format), torch.zeros(result.shape[::-1], dtype=result.dtype, device=result.device).permute(tuple(reversed(range(result.dim())))),
            torch.zeros(*result.shape, 2, dtype=result.dtype, device=result.device)[..., 0]]


def check_outputs(op, arguments, tally, what):
    """The operator with ``out=`` of several layouts, if it has one result that is not empty."""
    input, args, kwargs = arguments
    try:
        result = op(input, *args, **kwargs)
    except Exception:
        return
    if not isinstance(result, torch.Tensor) or result.layout != torch.strided or not result.numel():
        return

    def call(out, input, args, kwargs):
        return op(input, *args, **kwargs, out=out)

    for out in outputs_like(result):
        compare_call(call, (out, *arguments), tally, f"{what}, out= with strides {out.stride()}")


def check_operator(op, dtype, samples, errors=True):
    """Everything about one operator and dtype: out of place, in place, into results, non-contiguous arguments, bad input."""
    tally = Tally()
    function, inplace = op.get_op(), op.get_inplace()

    def call(input, args, kwargs):
        return function(input, *args, **kwargs)

    def call_inplace(input, args, kwargs):
        return inplace(input, *args, **kwargs)

    torch.manual_seed(0)
    for i, sample in enumerate(spread(op.sample_inputs(device(), dtype), samples)):
        arguments = (sample.input, tuple(sample.args), dict(sample.kwargs))
        compare_call(call, arguments, tally, f"sample {i} {sample.summary()}")
        if op.supports_out and i % 4 == 0 and op.name not in TAKES_OUT_FOR_CONTIGUOUS:
            check_outputs(function, arguments, tally, f"sample {i} {sample.summary()}")
        if i % 4 == 1:
            try:
                odd = sample.noncontiguous()
            except Exception:
                continue
            compare_call(call, (odd.input, tuple(odd.args), dict(odd.kwargs)), tally, f"sample {i}, non-contiguous {odd.summary()}",
                         torch.inference_mode)
        if inplace is not None and i % 4 == 0 and isinstance(sample.input, torch.Tensor) and not sample.broadcasts_input:
            compare_call(call_inplace, arguments, tally, f"sample {i}, in place {sample.summary()}")
    if errors and dtype == torch.float32 and op.error_inputs_func is not None:
        quiet = Tally()
        for i, error in enumerate(spread(op.error_inputs(device()), samples)):
            sample = error.sample_input
            compare_call(call, (sample.input, tuple(sample.args), dict(sample.kwargs)), quiet, f"bad input {i} {sample.summary()}")
        tally.wrong += quiet.wrong
    return tally


def work(names, dtypes, samples, output, skip):
    """Checks operators and writes a line of JSON for each; the line before says which one is about to run."""
    warnings.simplefilter("ignore")
    chosen = [op for op in operators() if not names or op.name in names or name_of(op) in names]
    with open(output, "a") as file:
        for op in chosen:
            for dtype in dtypes:
                key = f"{name_of(op)}:{dtype}"
                if key in skip or op.name in UNDEFINED or getattr(torch, dtype) not in op.supported_dtypes(device()):
                    continue
                print(json.dumps({"begin": key}), file=file, flush=True)
                signal.alarm(300)
                try:
                    tally = check_operator(op, getattr(torch, dtype), samples)
                    line = {"end": key, "kind": tally.kind(), "calls": tally.calls, "wrong": tally.wrong,
                            "reasons": dict(tally.reasons), "externs": dict(tally.externs), "fallbacks": dict(tally.fallbacks)}
                except Exception as error:  # the samples themselves cannot be made
                    line = {"end": key, "kind": "no samples", "calls": 0, "wrong": [], "reasons": {f"{type(error).__name__}: {error}"[:200]: 1},
                            "externs": {}, "fallbacks": {}}
                print(json.dumps(line), file=file, flush=True)


def report(lines, verbose):
    """Prints findings and the table; returns the number of operators with a wrong answer."""
    kinds, reasons, externs, fallbacks, wrong = (collections.Counter() for _ in range(5))
    for line in lines:
        kinds[line["kind"]] += 1
        reasons.update({r: 1 for r in line["reasons"]})
        externs.update({r: 1 for r in line["externs"]})
        fallbacks.update({r: 1 for r in line["fallbacks"]})
        for text in line["wrong"][: None if verbose else 3]:
            print(f"{line['end']}: {text}")
        if line["wrong"]:
            wrong[line["end"]] += len(line["wrong"])
            print(f"{line['end']}: {len(line['wrong'])} of {line['calls']} calls are wrong\n")
    print("| how it runs | operators x dtypes |\n|---|---|")
    for kind, count in kinds.most_common():
        print(f"| {kind} | {count} |")
    for title, counter in (("reasons to run in eager", reasons), ("extern calls", externs), ("shape rules that are missing", fallbacks)):
        print(f"\n{title}:")
        for name, count in counter.most_common(1000 if verbose else 25):
            print(f"  {count:4d}  {name}")
    print(f"\n{sum(line['calls'] for line in lines)} calls; {len(wrong)} of {len(lines)} operators x dtypes have a wrong answer")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operators; none: all")
    parser.add_argument("--dtypes", default="float32", help="separated by commas")
    parser.add_argument("--samples", type=int, default=12, help="at most so many of each operator; 0: all")
    parser.add_argument("--output", default="operators.jsonl", help="a line of JSON for each operator")
    parser.add_argument("--resume", action="store_true", help="leave out what the output has already")
    parser.add_argument("--report", action="store_true", help="only print what the output has")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    dtypes = options.dtypes.split(",")
    if options.worker:
        done = {line.get("end") or line.get("begin") for line in map(json.loads, Path(options.output).read_text().splitlines())}
        return work(set(options.names), dtypes, options.samples, options.output, done)
    if not options.report:
        if not options.resume:
            Path(options.output).write_text("")
        started = time.monotonic()
        while True:
            command = [sys.executable, __file__, "--worker", "--output", options.output, "--dtypes", options.dtypes,
                       "--samples", str(options.samples), *options.names]
            done = subprocess.run(command)
            if done.returncode == 0:
                break
            text = Path(options.output).read_text().splitlines()
            last = json.loads(text[-1]) if text else {}
            if "begin" not in last:
                sys.exit(f"the worker failed with status {done.returncode}")
            with open(options.output, "a") as file:
                print(json.dumps({"end": last["begin"], "kind": "crash", "calls": 0, "wrong": [f"the process died: {done.returncode}"],
                                  "reasons": {}, "externs": {}, "fallbacks": {}}), file=file)
        print(f"{time.monotonic() - started:.0f} s\n")
    lines = [line for line in map(json.loads, Path(options.output).read_text().splitlines()) if "end" in line]
    sys.exit(1 if report(lines, options.verbose) else 0)


if __name__ == "__main__":
    main()
