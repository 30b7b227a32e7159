"""Programs on a GPU: the first call, and a call after that, in eager and compiled. Prints the table of docs/gpu.md.

    python benchmarks/gpu/programs.py

Times of a call are host and device together, the best of five rounds of 50 calls back to back. For the first call without compiled kernels on disk:
OXYFUEL_CACHE=off.
"""

import argparse

import torch
import torch.nn.functional as F

import oxyfuel
from timing import seconds

CALLS, ROUNDS = 50, 5
DEVICE = torch.device("cuda")


def show(name, function, *arguments):
    """A row: microseconds in eager and compiled, seconds of the first call. A program that is not compiled whole is named."""
    oxyfuel.reset()
    compiled = oxyfuel.compile(function)
    function(*arguments)
    first = seconds(lambda: compiled(*arguments), 1)
    for _ in range(3):
        compiled(*arguments)
    eager, ours = (min(seconds(lambda f=f: f(*arguments), CALLS) for _ in range(ROUNDS)) * 1e6 for f in (function, compiled))
    metrics = oxyfuel.metrics()
    reasons = "; ".join(record["reason"] for record in metrics["breaks"])
    counts = f"{metrics['kernels']} kernels, {metrics['extern_calls']} calls"
    print(f"| {name} | {eager:.1f} | {ours:.1f} | {first:.2f} | {reasons or counts} |", flush=True)


def ten_operators(a, b):
    for _ in range(5):
        a = a * b + 1.5
    return a


def show_small():
    few = torch.randn(4, device=DEVICE), torch.randn(4, device=DEVICE)
    show("add, 4 elements", lambda a, b: a + b, *few)
    show("ten pointwise operators, 4 elements", ten_operators, *few)
    x, y = torch.randn(64, 1024, device=DEVICE), torch.randn(64, 1024, device=DEVICE)
    show("add, 64 x 1024", lambda a, b: a + b, x, y)
    show("seven pointwise operators, 64 x 1024", lambda a, b: torch.sigmoid(a) * b.tanh() + a.exp().clamp(max=3), x, y)
    show("softmax, 64 x 1024", lambda a: a.softmax(-1), x)
    show("layer norm, 64 x 1024", lambda a: F.layer_norm(a, (1024,)), x)
    show("sum of columns, 64 x 1024", lambda a: a.sum(0), x)
    show("transpose and add, 64 x 1024", lambda a: a.t().contiguous() + 1, x)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print("| program | eager, us | ours, us | first call, s | compiled |\n|---|---|---|---|---|")
    torch.manual_seed(0)
    with torch.no_grad():
        show_small()


if __name__ == "__main__":
    main()
