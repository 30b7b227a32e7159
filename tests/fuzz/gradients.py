#!/usr/bin/env python3
"""Gradients of every operator and module in PyTorch's own tables of samples, compiled and in eager.

    python tests/fuzz/gradients.py                                   operators and modules, float32, some samples of each
    python tests/fuzz/gradients.py --dtypes float64,bfloat16 --samples 0 softmax nn.LSTM

Prints what differs, what runs in eager and why.
"""

import argparse
import collections
import copy
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OXYFUEL_STRICT", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import oxyfuel  # noqa: E402
from devices import device  # noqa: E402
from observation import difference, leave_out_stacks, observe, tensors_of  # noqa: E402
from operators import UNDEFINED, Tally, copy_of, name_of, operators, spread  # noqa: E402

# Bases that are one of many, and results that other kernels may round to another one.
NOT_UNIQUE = UNDEFINED | {"linalg.qr", "qr", "linalg.svdvals", "linalg.matrix_rank", "linalg.lstsq", "nn.functional.rrelu"}


def modules():
    from torch.testing._internal.common_modules import module_db

    leave_out_stacks()
    return module_db


def differentiated(call):
    """A function of the arguments, the tensors that take part, and numbers to seed with: results and gradients."""

    def run(arguments, wanted):
        result = call(*arguments)
        outputs = [t for t in tensors_of(result) if t.requires_grad]
        random = torch.Generator().manual_seed(5)
        tangents = [torch.randn(o.shape, generator=random, dtype=torch.float64).to(o.device, o.dtype) for o in outputs]
        gradients = torch.autograd.grad(outputs, wanted, tangents, allow_unused=True) if outputs and wanted else []
        return result, [g if g is None else g.detach().clone() for g in gradients]

    return run


def same_with_grad(arguments, dtype=None):
    """A copy whose tensors require grad where the originals do, in another type if one is given."""
    needs = [t.requires_grad for t in tensors_of(arguments)]
    made = copy_of(arguments)
    if dtype is not None:
        made = pytree.tree_map_only(torch.Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t.to(torch.complex128) if t.is_complex() else t, made)
    wanted = [t.requires_grad_() for t, need in zip(tensors_of(made), needs) if need]
    return made, wanted


def compare(call, compiled_call, prepare, tally, what):
    """`prepare(dtype)`: fresh arguments and the tensors whose gradients are wanted."""
    oxyfuel.reset()
    tally.calls += 1
    expected = observe(differentiated(call), prepare(None))
    count = len(pytree.tree_leaves(expected.value[0])) if expected.raised is None else 0
    actual = observe(differentiated(compiled_call), prepare(None))
    metrics = oxyfuel.metrics()
    found = difference(expected, actual, single=True, with_layout=count)
    if found and expected.raised is None and actual.raised is None:
        found = difference(expected, actual, observe(differentiated(call), prepare(torch.float64)), single=True, with_layout=count)
    if found:
        tally.wrong.append(f"{what}: {found}")
    if not tally.stayed_eager(expected, metrics):
        tally.native += 1


def check_operator(op, dtype, samples):
    tally = Tally()
    function = op.get_op()

    def call(input, args, kwargs):
        return function(input, *args, **kwargs)

    torch.manual_seed(0)
    compiled = oxyfuel.compile(call)
    for i, sample in enumerate(spread(op.sample_inputs(device(), dtype, requires_grad=True), samples)):
        arguments = (sample.input, tuple(sample.args), dict(sample.kwargs))
        if any(t.layout != torch.strided or t.requires_grad and not t.is_leaf for t in tensors_of(arguments)):
            continue
        compare(call, compiled, lambda to, given=arguments: same_with_grad(given, to), tally, f"sample {i} {sample.summary()[:200]}")
    return tally


def check_module(info, dtype, samples):
    tally = Tally()
    torch.manual_seed(0)
    inputs = info.module_inputs_func(info, device=device(), dtype=dtype, requires_grad=True, training=True)
    for i, sample in enumerate(spread(inputs, samples)):
        torch.manual_seed(i)
        made = sample.constructor_input
        original = info.module_cls(*made.args, **made.kwargs).to(device(), dtype).train()
        given = (tuple(sample.forward_input.args), dict(sample.forward_input.kwargs))
        state = {}

        def prepare(to, original=original, given=given, state=state):
            module = state["module"] = copy.deepcopy(original) if to is None else copy.deepcopy(original).to(to)
            state["compiled"] = oxyfuel.compile(module)
            arguments, wanted = same_with_grad(given, to)
            return (arguments, [*wanted, *module.parameters()])

        def call(args, kwargs, state=state):
            return state["module"](*args, **kwargs), list(state["module"].buffers())

        def compiled(args, kwargs, state=state):
            return state["compiled"](*args, **kwargs), list(state["module"].buffers())

        compare(call, compiled, prepare, tally, f"sample {i} {str(made)[:120]}")
    return tally


def differentiable(dtype):
    for op in operators():
        if op.supports_autograd and op.name not in NOT_UNIQUE and dtype in op.supported_backward_dtypes(device()):
            yield op


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operators and modules; none: all")
    parser.add_argument("--dtypes", default="float32", help="separated by commas")
    parser.add_argument("--samples", type=int, default=4, help="at most so many of each; 0: all")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong, reasons = 0, collections.defaultdict(set)
    kinds = collections.Counter()
    for dtype in [getattr(torch, name) for name in options.dtypes.split(",")]:
        work = [(name_of(op), check_operator, op) for op in differentiable(dtype)]
        work += [(info.name, check_module, info) for info in modules()]
        for name, check, info in work:
            if options.names and name not in options.names:
                continue
            try:
                tally = check(info, dtype, options.samples)
            except Exception as error:  # the samples themselves cannot be made
                print(f"{name} {dtype}: no samples: {type(error).__name__}: {str(error)[:150]}", flush=True)
                continue
            kinds[tally.kind()] += 1
            for reason in tally.reasons:
                reasons[reason].add(name)
            for text in tally.wrong[:3]:
                print(f"{name} {dtype}: {text}", flush=True)
            wrong += bool(tally.wrong)
    print("\n".join(f"{reason}: {', '.join(sorted(names))}" for reason, names in reasons.items()))
    print(dict(kinds), f"{wrong} with a wrong answer")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
