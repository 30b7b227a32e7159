"""Every module of torch.nn, losses among them, trains to eager's gradients; tests/fuzz/gradients.py runs more."""

import warnings

import pytest
import torch

import gradients


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_modules(dtype):
    wrong, native = [], 0
    # The parameters of lazy modules come with the first call: there are no gradients to ask for before.
    modules = [info for info in gradients.modules() if not info.name.startswith("nn.Lazy")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in modules:
            tally = gradients.check_module(info, dtype, samples=1)
            native += tally.native > 0
            wrong += [f"{info.name}: {text}" for text in tally.wrong]
    assert not wrong, "\n".join(wrong)
    assert native >= len(modules) * 0.8 and len(modules) >= 60, (native, len(modules))


PARTS = 4

# In eager, a sixth is a float32 here, whatever the type of the tensors; ours is exact.
INEXACT_IN_EAGER = {torch.float64: {"nn.functional.hardsigmoid"}}


# Each operator in float32 and in one of the other types; tests/fuzz/gradients.py has them all.
TURNS = {torch.float32: slice(None), torch.float64: slice(0, None, 2), torch.bfloat16: slice(1, None, 2)}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", TURNS, ids=str)
def test_operators(dtype, part):
    wrong, made, native = [], 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in list(gradients.differentiable(dtype))[TURNS[dtype]][part::PARTS]:
            if op.name in INEXACT_IN_EAGER.get(dtype, ()):
                continue
            tally = gradients.check_operator(op, dtype, samples=1)
            made += tally.calls > 0
            native += tally.native > 0
            wrong += [f"{op.name}: {text}" for text in tally.wrong]
    assert not wrong, "\n".join(wrong)
    assert native >= made * 0.75 and made >= 20, (native, made)
