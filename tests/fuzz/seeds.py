"""Ranges of seeds: those that differ, and the command that prints them."""

import argparse
import sys


def seeds_in(text):
    """``first:last`` (excluded), or one seed, as a range."""
    first, _, last = text.partition(":")
    return range(int(first), int(last) if last else int(first) + 1)


def differing(difference, first, count):
    """Of `count` seeds those whose programs differ, with what differs; `difference(seed)` is empty where nothing does."""
    return {seed: found for seed in range(first, first + count) if (found := difference(seed))}


def main(description, program, difference):
    """Prints a line for each seed whose program differs, then their number; exits with 1 if there are any."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:1000", help="first:last (excluded), or one")
    parser.add_argument("--show", action="store_true", help="print the programs")
    options = parser.parse_args()
    different = 0
    for seed in seeds_in(options.seeds):
        if options.show:
            print(program(seed))
        if found := difference(seed):
            different += 1
            print(f"seed {seed}: {found}", flush=True)
    print(f"seeds {options.seeds}: {different} differ")
    sys.exit(1 if different else 0)
