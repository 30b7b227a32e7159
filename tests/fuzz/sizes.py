#!/usr/bin/env python3
"""The random programs of graphs.py, called with many sizes each: what is compiled with symbols gives eager's answers for all.

    python tests/fuzz/sizes.py --seeds 0:10000           many; a failing one is shrunk and printed as a program
    python tests/fuzz/sizes.py --seeds 4711 --show       one, with its text
    python tests/fuzz/sizes.py --gradients --seeds 0:10000       programs that are differentiated, with their gradients

A seed makes a program and seven calls of it: the first two with the sizes that it was made for, then five with others, 0 and 1
among them. For every second seed all sizes are symbols from the first call on.
"""

import dataclasses
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import graphs  # noqa: E402
from generator import SIZES, generate  # noqa: E402

CALLS = 5  # with other sizes


def other_sizes(r, base):
    """Sizes for another call. A size of 1 mostly stays, since the program may rely on broadcasting it."""

    def other(size):
        if r.random() < (0.8 if size == 1 else 0.25):
            return size
        return r.choice((0, 1) if r.random() < 0.25 else SIZES)

    moved = {size: other(size) for size in base}
    return [moved[size] for size in base]


def program_with_sizes(seed, gradients=False):
    program = generate(seed, gradients)
    r = random.Random(seed)
    base = program.sizes[0]
    sizes = [base, base, *(other_sizes(r, base) for _ in range(CALLS))]
    return dataclasses.replace(program, sizes=sizes, dynamic=True if seed % 2 else None, all_strides=False)


if __name__ == "__main__":
    sys.exit(min(graphs.main(__doc__, program_with_sizes, __file__), 1))
