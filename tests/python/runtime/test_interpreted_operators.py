"""Operators of our own, as graphs run them that are interpreted: a backward pass whose kernels cannot be made, for one."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

OWN = torch.ops.oxyfuel
TABLES = Path(__file__).resolve().parents[3] / "src" / "ops"


@pytest.fixture(scope="module", autouse=True)
def defined():
    """With the first recording of a program."""
    oxyfuel.compile(lambda x: x + 1)(torch.ones(1))


def test_all_that_kernels_compute_can_be_interpreted():
    """A call in a plan (no lowering) has a routine of its own."""
    entries = [entry for file in TABLES.rglob("operators.cpp") for entry in file.read_text().split("{.name = ")]
    lowered = [re.match(r'"oxyfuel::(\w+)"', entry).group(1) for entry in entries if entry.startswith('"oxyfuel::') and ".lower = " in entry]
    assert len(lowered) > 5
    assert not [name for name in lowered if not hasattr(OWN, name)]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("kernel, stride, padding, dilation, ceil", [([3, 2], [2, 1], [1, 1], [1, 1], False), ([2, 2], [], [0, 0], [1, 1], True), ([3, 3], [1, 2], [1, 0], [2, 1], False)])
def test_max_pools(kernel, stride, padding, dilation, ceil, layout):
    x = torch.randn(2, 3, 9, 8, dtype=torch.float64).to(memory_format=layout)
    values, indices = torch.ops.aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil)
    pooled, places = OWN.max_pool2d_places(x, kernel, stride, padding, dilation, ceil)
    assert places.dtype == torch.int8 and torch.equal(pooled, values)
    assert torch.equal(OWN.max_pool2d_indices(places, 8, kernel, stride, padding, dilation), indices)
    if dilation == [1, 1]:
        tangent = torch.randn_like(values)
        expected = torch.ops.aten.max_pool2d_with_indices_backward(tangent, x, kernel, stride, padding, dilation, ceil, indices)
        found = OWN.max_pool2d_gradient(tangent, places, x.shape, kernel, stride, padding, layout)
        assert found.is_contiguous(memory_format=layout)
        torch.testing.assert_close(found, expected)


def test_depthwise_convolutions():
    x, weight = torch.randn(2, 5, 7, 6), torch.randn(5, 1, 3, 2)
    found = OWN.depthwise_convolution(x, weight.permute(2, 3, 0, 1).contiguous(), [1, 2], [1, 0], [2, 1], torch.channels_last)
    assert found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found, F.conv2d(x, weight, None, [1, 2], [1, 0], [2, 1], 5))


def test_products_and_rows():
    row, matrix = torch.randn(1, 40), torch.randn(9, 40)
    torch.testing.assert_close(OWN.vector_product(row, matrix), row @ matrix.t())
    x = torch.randn(4, 6).bfloat16()
    maxima, sums = OWN.softmax_rows(x, 1)
    torch.testing.assert_close((x.float() - maxima).exp() / sums, x.float().softmax(1))


def philox(seed, counter, sequence):
    """Four words (Salmon et al., 2011), written anew."""
    words, keys = [counter % 2**32, counter >> 32, sequence % 2**32, sequence >> 32], [seed % 2**32, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [second >> 32 ^ words[1] ^ keys[0], second % 2**32, first >> 32 ^ words[3] ^ keys[1], first % 2**32]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return words


def test_dropout():
    """Threads take four neighbours each, and begin again once all have."""
    seed, counter, threads, p = 2**40 + 7, 12, 4, 0.3
    x = torch.arange(1, 41.0).reshape(5, 8).t()
    mask = OWN.philox_mask(torch.tensor([seed, 99, counter]), 1, p, 4, threads, x.dtype, [8, 5], [1, 8])
    result = OWN.scale_kept(x, mask, p)
    for element in range(40):  # in memory order
        share, word = divmod(element, 4)
        number = (philox(seed, counter + share // threads, share % threads)[word] + 0.5) / 2**32
        at = (element % 8, element // 8)
        assert mask[at] == (number < 1 - p)
        assert result[at].item() == pytest.approx(x[at].item() / (1 - p) if mask[at] else 0.0)
    assert 0 < mask.sum() < 40
