#!/usr/bin/env python3
"""What static variants gain where all sizes are symbols: small functions with numbers, with symbols, and with a variant.

    python benchmarks/sizes/static_variants.py [--threads 1] [--seconds 0.5]

Columns: medians of calls in turn; symbols over numbers, and over what options={"static_variants": 8} leads to; whether the variant was
kept; whether its answer has the bits of the one with symbols.
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import oxyfuel
from dynamic import judge

PROGRAMS = {
    "softmax, 4096 x 8": (lambda x: x.softmax(-1), [(4096, 8)]),
    "softmax, 1024 x 64": (lambda x: x.softmax(-1), [(1024, 64)]),
    "softmax, 2 x 5": (lambda x: x.softmax(-1), [(2, 5)]),
    "layer_norm, 2048 x 24": (lambda x: F.layer_norm(x, (x.size(-1),)), [(2048, 24)]),
    "layer_norm, 512 x 768": (lambda x: F.layer_norm(x, (x.size(-1),)), [(512, 768)]),
    "group_norm, 8 x 16 x 16 x 16": (lambda x: F.group_norm(x, 4), [(8, 16, 16, 16)]),
    "sum of rows, 8192 x 3": (lambda x: (x * 2).sum(-1), [(8192, 3)]),
    "sum of columns, 3 x 8192": (lambda x: (x * 2).sum(0), [(3, 8192)]),
    "sum, 512 x 512": (lambda x: (x * x).sum(), [(512, 512)]),
    "var, 256 x 1000": (lambda x: x.var(-1), [(256, 1000)]),
    "argmax, 1024 x 10": (lambda x: x.argmax(-1), [(1024, 10)]),
    "pointwise, 512 x 512": (lambda x, y: (x * y + 1).relu(), [(512, 512), (512, 512)]),
    "pointwise, 4096 x 4 and 4": (lambda x, y: (x * y + 1).relu(), [(4096, 4), (4,)]),
    "pointwise, 512 x 33 and 33": (lambda x, y: (x * y + 1).relu(), [(512, 33), (33,)]),
    "transpose, 256 x 256": (lambda x: x.t().contiguous() + 1, [(256, 256)]),
    "channels last, 4 x 3 x 64 x 64": (lambda x: x.permute(0, 2, 3, 1).contiguous() * 2, [(4, 3, 64, 64)]),
    "max_pool2d, 4 x 16 x 32 x 32": (lambda x: F.max_pool2d(x, 2), [(4, 16, 32, 32)]),
    "avg_pool2d, 4 x 16 x 32 x 32": (lambda x: F.avg_pool2d(x, 3, 1, 1), [(4, 16, 32, 32)]),
    "cat, 256 x 16 and 17": (lambda x, y: torch.cat([x, y], 1) * 2, [(256, 16), (256, 17)]),
    "roll, 64 x 64 x 16": (lambda x: x.roll((1, 2), (0, 1)) * 2, [(64, 64, 16)]),
    "interpolate, 4 x 8 x 16 x 16": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [(4, 8, 16, 16)]),
    "bmm, 512 x 4 x 4": (lambda x, y: (x @ y).relu(), [(512, 4, 4), (512, 4, 4)]),
    "cumsum, 512 x 64": (lambda x: x.cumsum(-1), [(512, 64)]),
}


def measure(program, inputs, seconds):
    """Medians of a call by way, whether the variant was kept, and whether it gives the same bits."""
    oxyfuel.reset()
    ways = [
        oxyfuel.compile(program, dynamic=False),
        oxyfuel.compile(program, dynamic=True),
        oxyfuel.compile(program, dynamic=True, options={"static_variants": 8}),
    ]
    for way in ways:
        judge(lambda: way(*inputs))
    times = [[] for _ in ways]
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        for k in range(len(ways)):
            way, start = (k + rounds) % len(ways), time.perf_counter()
            for _ in range(5):
                ways[way](*inputs)
            times[way].append((time.perf_counter() - start) / 5)
        rounds += 1
    kept = oxyfuel.metrics()["static_variants"]["kept"] > 0
    return [statistics.median(t) for t in times], kept, torch.equal(ways[1](*inputs), ways[2](*inputs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="of calls in turn, a function")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    generator = torch.Generator().manual_seed(0)
    print("| function | numbers, us | symbols, us | ratio | with a variant, us | symbols over it | kept | same bits |\n|" + "---|" * 8)
    for name, (program, shapes) in PROGRAMS.items():
        inputs = [torch.randn(shape, generator=generator) for shape in shapes]
        with torch.no_grad():
            (numbers, symbols, variant), kept, same = measure(program, inputs, arguments.seconds)
        cells = [name, f"{numbers * 1e6:.1f}", f"{symbols * 1e6:.1f}", f"{symbols / numbers:.2f}", f"{variant * 1e6:.1f}"]
        cells += [f"{symbols / variant:.2f}", "yes" if kept else "no", "yes" if same else "no"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
