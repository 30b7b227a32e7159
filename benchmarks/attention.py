#!/usr/bin/env python3
"""Attention written as products with a softmax between them: eager, ours, PyTorch's fused operator, on a GPU torch.compile.

    python benchmarks/attention.py [--threads 1] [--width 64] [--types float32 bfloat16] [--query-rows 1] [--device cuda]

Microseconds of the processor, or of a GPU that is given calls one behind another: the least of many. "taken": ours calls the fused operator
(passes/attention/recognise_attention.h); else it computes two products and a generated softmax.
"""

import argparse
import math
import time

import torch
import torch.nn.functional as F

import oxyfuel

CPU_SHAPES = [(1, 12, 16), (8, 12, 16), (1, 12, 64), (1, 12, 128), (8, 12, 128), (1, 12, 256), (1, 12, 512)]  # batch, heads, rows
GPU_SHAPES = [(1, 12, 64), (1, 12, 512), (8, 12, 128), (8, 12, 512), (32, 12, 197), (8, 12, 1024), (1, 16, 2048)]


def written(query, keys, values, mask=None):
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ values


def fused(query, keys, values, mask=None):
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


def least(function, arguments, seconds=0.25):
    for _ in range(3):
        function(*arguments)
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 500):
        start = time.process_time()
        function(*arguments)
        times.append(time.process_time() - start)
    return min(times) * 1e6


def least_on_gpu(function, arguments, repeats=5, calls=30):
    for _ in range(5):
        function(*arguments)
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(calls):
            function(*arguments)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls)
    return min(times) * 1e3


def operands(shape, query_rows, width, dtype, is_masked):
    """As projections give them, and a mask that hides the last quarter of the keys."""
    batch, heads, keys = shape
    parts = [torch.randn(batch, rows, heads, width).to(dtype).transpose(1, 2) for rows in (query_rows or keys, keys, keys)]
    if not is_masked:
        return parts
    mask = torch.zeros(batch, 1, query_rows or keys, keys)
    mask[..., keys - keys // 4 :] = torch.finfo(dtype).min
    return [*parts, mask.to(dtype)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--width", type=int, default=64, help="elements of a head")
    parser.add_argument("--types", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--query-rows", type=int, default=0, help="of the query; 0: as many as keys")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    on_gpu = arguments.device == "cuda"
    measure = least_on_gpu if on_gpu else least
    peer = " torch.compile |" if on_gpu else ""
    print(f"| batch x heads x rows | type | mask | eager | ours | fused operator |{peer} taken |\n|" + "---|" * (7 + on_gpu))
    for name in arguments.types:
        for shape in GPU_SHAPES if on_gpu else CPU_SHAPES:
            for is_masked in (False, True):
                given = operands(shape, arguments.query_rows, arguments.width, getattr(torch, name), is_masked)
                given = [tensor.to(arguments.device) for tensor in given]
                oxyfuel.reset()
                ours = oxyfuel.compile(written, dynamic=False)
                with torch.no_grad():
                    torch.testing.assert_close(ours(*given), written(*given), rtol=2e-2, atol=2e-2)
                    [segment] = oxyfuel.explain(ours)(*given).segments
                    functions = [written, ours, fused]
                    if on_gpu:
                        torch._dynamo.reset()
                        functions.append(torch.compile(written, dynamic=False))
                    times = [measure(function, given) for function in functions]
                cells = [" x ".join(map(str, shape)), name, "yes" if is_masked else "no", *(f"{t:.0f}" for t in times)]
                print("| " + " | ".join([*cells, "yes" if segment["extern_calls"] == 1 else "no"]) + " |", flush=True)


if __name__ == "__main__":
    main()
