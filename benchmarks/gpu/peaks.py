"""Peaks of a GPU's memory call by call, in MiB: what tensors take, and all that PyTorch's allocator holds.

    python benchmarks/gpu/peaks.py [--models gpt2:16 train-gpt2 …] [--ways ours reduce-overhead …] [--calls 6] [--blocks 12]

`gpt2:16` is inference with a batch of 16, `gpt2:16:float32` that in float32 instead of bfloat16. The ways are those of whole_models.py. Each runs in a process of its own, so that nothing
is left by another one. The first call compiles, later ones record graphs and replay them: what the graphs of torch.compile need
is held, and in no tensor. --blocks lists what lies in memory at the peak of each call: MiB of a block, and the call that made it.
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
    model, batch, *dtype = name.split(":")
    return whole_models.inference_of(model, int(batch), getattr(torch, dtype[0]) if dtype else torch.bfloat16)


class Blocks:
    """Blocks of memory that the calls have made and not given back, each with its size in bytes and the call's number."""

    def __init__(self):
        torch.cuda.memory._record_memory_history(context=None)
        self.alive = {}
        self.seen = 0

    def at_peak(self, call):
        """Blocks alive at the peak of the call that has just ended, the largest ones first."""
        events = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        total = highest = 0
        peak = dict(self.alive)
        for event in events[self.seen :]:
            if event["action"] == "alloc":
                self.alive[event["addr"]] = event["size"], call
                total += event["size"]
            elif event["action"] == "free_requested":
                total -= event["size"]
                self.alive.pop(event["addr"], None)
            if total > highest:
                highest, peak = total, dict(self.alive)
        self.seen = len(events)
        return sorted(peak.values(), reverse=True)


def measure(name, way, calls, listed):
    function, cells, lists = program(name)(whole_models.WAYS[way]), [], []
    before = torch.cuda.memory_allocated() >> 20
    blocks = Blocks() if listed else None
    for call in range(1, calls + 1):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        function()
        torch.cuda.synchronize()
        cells.append(f"{torch.cuda.max_memory_allocated() >> 20} of {torch.cuda.max_memory_reserved() >> 20}")
        if blocks:
            shown = [f"{size / 2**20:.1f} ({made})" for size, made in blocks.at_peak(call)[:listed]]
            lists.append(f"| blocks at the peak of call {call}: {', '.join(shown)} |")
    steady = min(whole_models.seconds(function, CALLS) for _ in range(ROUNDS))
    print("\n".join([f"| {name} | {way} | {before} | {' | '.join(cells)} | {steady * 1e6:.0f} |", *lists]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["train-gpt2", "train-t5", "train-bert", "train-vit"])
    parser.add_argument("--ways", nargs="+", choices=whole_models.WAYS, default=["ours", "reduce-overhead"])
    parser.add_argument("--calls", type=int, default=6)
    parser.add_argument("--blocks", type=int, default=0)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.models[0], arguments.ways[0], arguments.calls, arguments.blocks)
    numbers = range(1, arguments.calls + 1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print(f"| model | way | before | {' | '.join(f'call {i}' for i in numbers)} | steady, us |")
    print(f"|---|---|---|{'---|' * (arguments.calls + 1)}")
    for name in arguments.models:
        for way in arguments.ways:
            command = [sys.executable, __file__, "--measure", "--models", name, "--ways", way, "--calls", str(arguments.calls)]
            command += ["--blocks", str(arguments.blocks)]
            result = subprocess.run(command, capture_output=True, text=True)
            rows = [line for line in result.stdout.splitlines() if line.startswith("|")]
            print("\n".join(rows) if rows else f"| {name} | {way} | {result.stderr.strip().splitlines()[-1:]} |", flush=True)


if __name__ == "__main__":
    main()
