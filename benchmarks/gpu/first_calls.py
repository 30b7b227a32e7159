"""First calls on a GPU in processes of their own: without kernels on disk, and with those of the process before.

    python benchmarks/gpu/first_calls.py [bert gpt2 convnext mobilenetv3 t5 … train-bert …]

Seconds of the first call, less a steady one; eager has run before. What the compiler's stages take of it stands behind.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import torch

import whole_models
import oxyfuel

WARM_UP, MOST_STAGES = 5, 4


def program(name):
    """A function that makes the model's call, or its training step, in a way."""
    if name.startswith("train-"):
        return whole_models.training_of(name.removeprefix("train-"))
    return whole_models.inference_of(name, batch=1)


def timed(function):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def measure(name):
    make = program(name)
    eager, ours = make(lambda model: model), make(oxyfuel.compile)
    eager()
    first = timed(ours)
    for _ in range(WARM_UP):
        ours()
    stages = sorted(oxyfuel.metrics()["seconds"].items(), key=lambda stage: -stage[1])[:MOST_STAGES]
    print(f"{first - timed(ours):.2f} ({', '.join(f'{stage} {took:.2f}' for stage, took in stages)})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["bert", "gpt2", "convnext", "mobilenetv3", "t5", "train-bert", "train-resnet50"])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.measure)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n\n| model | cold, s | warm, s |\n|---|---|---|")
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as cache:
            command, environment = [sys.executable, __file__, "--measure", name], dict(os.environ, OXYFUEL_CACHE=cache)
            cells = [subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip() for _ in range(2)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
