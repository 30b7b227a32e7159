"""Compares a compiled function with eager on the GPU, by how far each is from eager in float64."""

import torch
from torch.utils._pytree import tree_flatten, tree_map

import oxyfuel


def in_float64(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def tensors_of(value):
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def error_of(results, reference):
    return [(a.double() - b.double()).abs().max().item() if a.numel() else 0.0 for a, b in zip(results, reference, strict=True)]


def check_close(ours, eager, exact):
    """Ours is as near to float64 as eager, within a factor of 2 and one rounding of the largest element."""
    for mine, theirs, best in zip(tensors_of(ours), tensors_of(eager), tensors_of(exact), strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.device == theirs.device
        assert mine.stride() == theirs.stride()
        if not mine.is_floating_point():
            assert torch.equal(mine, theirs)
            continue
        (own,), (others,) = error_of([mine], [best]), error_of([theirs], [best])
        rounding = torch.finfo(mine.dtype).eps * max(1.0, best.abs().max().item() if best.numel() else 0.0)
        assert own <= 2 * others + 2 * rounding, f"error {own}, eager's {others}"


CALLS = 5  # the third one records its work, and those behind it replay it


def elsewhere(value):
    """The same values in other memory."""
    return value.clone(memory_format=torch.preserve_format) if isinstance(value, torch.Tensor) else value


def check(function, *arguments, kernels=None):
    """`function` is compiled whole, calls of it give eager's answer wherever their inputs lie, and it had so many kernels."""
    eager = function(*arguments)
    exact = function(*tree_map(in_float64, arguments))
    compiled = oxyfuel.compile(function, fullgraph=True)
    results = []
    for call in range(CALLS):
        results.append(compiled(*(tree_map(elsewhere, arguments) if call == CALLS - 1 else arguments)))
    for result in results:
        check_close(result, eager, exact)
    counted = oxyfuel.metrics()
    assert counted["calls_eager"] == 0 and counted["calls_compiled"] == CALLS, counted["breaks"]
    if kernels is not None:
        assert counted["kernels"] == kernels
