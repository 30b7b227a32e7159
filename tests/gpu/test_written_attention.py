"""Attention that is written as products and a softmax becomes one of PyTorch's operators, where a card has a fast one."""

import math

import pytest
import torch
from comparison import error_of

import oxyfuel

if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

CALLS = 4  # the third one records its work, and the one behind it replays it
IS_HOPPER = torch.cuda.get_device_capability() >= (9, 0)
BATCH, HEADS, WIDTH = 3, 4, 64


def numbers(*sizes, dtype):
    return torch.randn(*sizes, device="cuda").to(dtype)


def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), -1) @ v


def with_wide_softmax(q, k, v):
    scores = q @ k.transpose(-2, -1) * 0.125
    return torch.softmax(scores, -1, dtype=torch.float64 if q.dtype == torch.float64 else torch.float32).to(q.dtype) @ v


def with_bias(q, k, v, bias):
    return torch.softmax(q @ k.transpose(-2, -1) + bias, -1) @ v


def with_hidden_keys(q, k, v, hidden):
    scores = q @ k.transpose(-2, -1) * 0.125
    return scores.masked_fill(hidden, -math.inf).softmax(-1) @ v


def bias_of_heads(rows, keys, dtype):
    return numbers(1, HEADS, rows, keys, dtype=dtype)


def bias_of_batches(rows, keys, dtype):
    return numbers(BATCH, 1, 1, keys, dtype=dtype)


def later_keys(rows, keys, dtype):
    return torch.ones(rows, keys, dtype=torch.bool, device="cuda").triu(1)


def keys_of_some_rows(rows, keys, dtype):
    """All of one row."""
    hidden = torch.rand(BATCH, 1, rows, keys, device="cuda") > 0.7
    hidden[1, :, min(2, rows - 1)] = True
    return hidden


FORMS = {
    "plain": (plain, None),
    "wide softmax": (with_wide_softmax, None),
    "bias of heads": (with_bias, bias_of_heads),
    "bias of batches": (with_bias, bias_of_batches),
    "causal": (with_hidden_keys, later_keys),
    "hidden rows": (with_hidden_keys, keys_of_some_rows),
}


def operands(name, rows, keys, dtype):
    """As projections give them: [batch, rows, heads, width], transposed."""
    tensors = [numbers(BATCH, length, HEADS, WIDTH, dtype=dtype).transpose(1, 2) for length in (rows, keys, keys)]
    mask = FORMS[name][1]
    return tensors if mask is None else [*tensors, mask(rows, keys, dtype)]


def check(name, compiled, arguments):
    function = FORMS[name][0]
    with torch.no_grad():
        expected, exact = function(*arguments), function(*[a.double() if a.is_floating_point() else a for a in arguments])
        actual = compiled(*arguments)
    assert (actual.dtype, actual.shape, actual.stride()) == (expected.dtype, expected.shape, expected.stride())
    assert torch.equal(actual.isnan(), expected.isnan())
    (own,), (others,) = (error_of([result.nan_to_num()], [exact.nan_to_num()]) for result in (actual, expected))
    assert own <= 2 * others + torch.finfo(expected.dtype).eps / 2, (own, others)


@pytest.mark.parametrize("sizes", [(64, 64), (197, 197), (130, 75), (16, 9)], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_one_operator(name, dtype, sizes):
    compiled = oxyfuel.compile(FORMS[name][0], fullgraph=True, dynamic=False)
    for _ in range(CALLS):
        check(name, compiled, operands(name, *sizes, dtype))
    is_masked = FORMS[name][1] is not None
    assert oxyfuel.metrics()["extern_calls"] == (1 if IS_HOPPER or not is_masked else 2)


@pytest.mark.parametrize("name", FORMS)
def test_sizes_that_change(name):
    compiled = oxyfuel.compile(FORMS[name][0], fullgraph=True)
    for rows, keys in ((64, 64), (72, 72), (75, 75), (40, 40), (75, 75), (1, 1), (20, 20)):
        for _ in range(CALLS):
            check(name, compiled, operands(name, rows, keys, torch.bfloat16))


@pytest.mark.parametrize("name", ["plain", "causal"])
def test_operands_that_lie_anywhere(name):
    """Rows that do not begin at multiples of 16 bytes, and memory that is shared."""
    compiled = oxyfuel.compile(FORMS[name][0], fullgraph=True, dynamic=False)
    for offset in (0, 1, 3):
        q, k, v, *mask = operands(name, 64, 64, torch.bfloat16)
        memory = numbers(q.numel() + offset, dtype=torch.bfloat16)
        moved = memory[offset:].view(q.shape)
        for each in ((moved, k, v), (q, moved, moved), (q.expand(3, 4, 64, 64), k[:1].expand(3, -1, -1, -1), v)):
            for _ in range(CALLS):
                check(name, compiled, [*each, *mask])


def test_flags_of_the_program():
    """`torch.backends.cuda` says which kernels may be used."""
    compiled = oxyfuel.compile(plain, fullgraph=True, dynamic=False)
    arguments = operands("plain", 64, 64, torch.bfloat16)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        check("plain", compiled, arguments)
        assert oxyfuel.metrics()["extern_calls"] == 2
    check("plain", compiled, arguments)
    assert oxyfuel.metrics()["extern_calls"] == 3
