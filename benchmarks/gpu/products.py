"""Matrix products of half precision on a GPU, as they are and with sizes filled up to multiples of 8: what runtime/cuda's
library_layouts.cpp is based on.

    python benchmarks/gpu/products.py

Microseconds of a product [rows, inner] x [inner, columns], host and device together, the best of three rounds of 30: of a row-major
and a transposed weight, with the result's rows at distances that are multiples of 8, with the weight padded; and what a copy of the
columns that count takes.
"""

import argparse

import torch

from timing import seconds

CUDA, DTYPE, MULTIPLE = torch.device("cuda"), torch.bfloat16, 8
SIZES = ((1, 768, 50257), (16, 768, 50257), (128, 768, 50257), (2048, 768, 50257), (2048, 768, 1001), (64, 512, 77), (2048, 1024, 1022))
ROUNDS, CALLS, WARM_UP = 3, 30, 5


def microseconds(function):
    for _ in range(WARM_UP):
        function()
    return min(seconds(function, CALLS) for _ in range(ROUNDS)) * 1e6


def show(rows, inner, columns):
    wide = -(-columns // MULTIPLE) * MULTIPLE
    x, weight = torch.randn(rows, inner, device=CUDA, dtype=DTYPE), torch.randn(columns, inner, device=CUDA, dtype=DTYPE)
    padded = torch.zeros(wide, inner, device=CUDA, dtype=DTYPE)
    padded[:columns] = weight
    out, wide_out = (torch.empty(rows, n, device=CUDA, dtype=DTYPE) for n in (columns, wide))
    times = [
        microseconds(lambda: torch.mm(x, weight.t(), out=out)),
        microseconds(lambda: torch.mm(x, weight.t(), out=wide_out[:, :columns])),
        microseconds(lambda: torch.mm(x, padded.t(), out=wide_out)),
        microseconds(lambda: out.copy_(wide_out[:, :columns])),
    ]
    print(f"| {rows} x {inner} x {columns} | {' | '.join(f'{time:.0f}' for time in times)} |", flush=True)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print("| product | as it is | with distant rows | padded | copy |\n|---|---|---|---|---|")
    torch.manual_seed(0)
    for sizes in SIZES:
        show(*sizes)


if __name__ == "__main__":
    main()
