"""Peaks of a GPU's memory call by call, in MiB: what tensors take, and all that PyTorch's allocator holds.

    python benchmarks/gpu/peaks.py [--models gpt2:16 train-gpt2 …] [--ways ours reduce-overhead …] [--calls 6]

`gpt2:16` is inference with a batch of 16. The ways are those of whole_models.py. Each runs in a process of its own, so that nothing
is left by another one. The first call compiles, later ones record graphs and replay them: what the graphs of torch.compile need
is held, and in no tensor.
"""

import argparse
import subprocess
import sys

import torch

import whole_models

ROUNDS, CALLS = 3, 20


def program(name):
    """A function that makes the model's call, or its training step, in a way."""
    if name.startswith("train-"):
        return whole_models.training_of(name.removeprefix("train-"))
    model, batch = name.split(":")
    return whole_models.inference_of(model, int(batch))


def measure(name, way, calls):
    function, cells = program(name)(whole_models.WAYS[way]), []
    before = torch.cuda.memory_allocated() >> 20
    for _ in range(calls):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        function()
        torch.cuda.synchronize()
        cells.append(f"{torch.cuda.max_memory_allocated() >> 20} of {torch.cuda.max_memory_reserved() >> 20}")
    steady = min(whole_models.seconds(function, CALLS) for _ in range(ROUNDS))
    print(f"| {name} | {way} | {before} | {' | '.join(cells)} | {steady * 1e6:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["train-gpt2", "train-t5", "train-bert", "train-vit"])
    parser.add_argument("--ways", nargs="+", choices=whole_models.WAYS, default=["ours", "reduce-overhead"])
    parser.add_argument("--calls", type=int, default=6)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.models[0], arguments.ways[0], arguments.calls)
    numbers = range(1, arguments.calls + 1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print(f"| model | way | before | {' | '.join(f'call {i}' for i in numbers)} | steady, us |")
    print(f"|---|---|---|{'---|' * (arguments.calls + 1)}")
    for name in arguments.models:
        for way in arguments.ways:
            command = [sys.executable, __file__, "--measure", "--models", name, "--ways", way, "--calls", str(arguments.calls)]
            result = subprocess.run(command, capture_output=True, text=True)
            rows = [line for line in result.stdout.splitlines() if line.startswith("|")]
            print("\n".join(rows) if rows else f"| {name} | {way} | {result.stderr.strip().splitlines()[-1:]} |", flush=True)


if __name__ == "__main__":
    main()
