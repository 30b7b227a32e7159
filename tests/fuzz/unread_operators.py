#!/usr/bin/env python3
"""Operators of PyTorch's own table of samples, whose results nobody reads, called with other sizes: they raise where eager does.

    python tests/fuzz/unread_operators.py                     all operators, some samples of each
    python tests/fuzz/unread_operators.py --samples 0 mv      all samples of one

Each sample is compiled with symbols for all sizes. Then one size after the other is 0, 1 or a little larger in all tensors that
have it. Most such calls are none that eager takes.
"""

import argparse
import os
import re
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OXYFUEL_STRICT", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import oxyfuel  # noqa: E402
from operators import name_of, operators, spread  # noqa: E402

# Eager reads or writes outside of its memory if sizes do not fit, or hands matrices to a library that does.
# A scatter as_strided that leaves the memory raises only where it is read.
LEFT_OUT = ("segment_reduce", "linalg.eig", "ctc_loss", "sparse", "lobpcg", "as_strided_scatter")
MOST_ELEMENTS = 20_000


def resized(tensor, old, new):
    """The tensor with `new` in the place of each size that is `old`; its elements are repeated or left out."""
    shape = [new if size == old else size for size in tensor.shape]
    count = torch.Size(shape).numel()
    elements = tensor.detach().reshape(-1)
    if count == 0 or elements.numel() == 0:
        return torch.zeros(shape, dtype=tensor.dtype)
    return elements.repeat(-(-count // elements.numel()))[:count].reshape(shape).clone()


# What embedding_bag's library says of an index that is out of range. Which of them it says is not always the same.
OUT_OF_RANGE = re.compile(r"Expected i < index_size to be true.*|Index \d+ of input takes value -?\d+ which is not in the valid range.*")


def outcome(function, tensors):
    torch.manual_seed(0)
    try:
        function(*[t.clone() for t in tensors])
        return "returned"
    except Exception as error:
        return type(error).__name__, OUT_OF_RANGE.sub("index out of range", str(error).strip().split("\n")[0][:200])


def differences_of(operator, sample):
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[i].detach() for i in places]
    if any(t.numel() > MOST_ELEMENTS or t.layout != torch.strided for t in tensors):
        return

    def unread(*tensors):
        given = list(leaves)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        first, others, named = pytree.tree_unflatten(given, spec)
        operator(first, *others, **named)

    oxyfuel.reset()
    compiled = oxyfuel.compile(unread, dynamic=True)
    changes = [(old, new) for old in sorted({size for t in tensors for size in t.shape}) for new in (0, 1, old + 1, old + 2) if new != old]
    for call in [tensors, *([resized(t, *change) for t in tensors] for change in changes)]:
        expected, actual = outcome(unread, call), outcome(compiled, call)
        if expected != actual:
            yield f"{name_of(operator)}, {[tuple(t.shape) for t in tensors]}, then {[tuple(t.shape) for t in call]}: eager {expected}, compiled {actual}"


def differences(operator, count):
    """What differs with some of the operator's samples (0: all)."""
    if any(word in operator.name for word in LEFT_OUT):
        return []
    dtype = next((d for d in (torch.float32, torch.int64) if operator.supports_dtype(d, "cpu")), None)
    if dtype is None:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [found for sample in spread(operator.sample_inputs("cpu", dtype), count) for found in differences_of(operator, sample)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=7)
    options = parser.parse_args()
    different = 0
    for operator in operators():
        if options.names and operator.name not in options.names:
            continue
        for found in differences(operator, options.samples):
            different += 1
            print(found, flush=True)
    print(f"{different} calls differ")
    return min(different, 1)


if __name__ == "__main__":
    sys.exit(main())
