"""Sizes of data that are not what operators take for likely: right answers, and a reason where calls run in eager."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

X = torch.randn(9, 8)
LENGTHS = [torch.tensor(lengths) for lengths in ([2, 3, 4], [1, 4, 4], [3, 3, 3], [5, 2, 2], [4, 1, 4], [0, 8, 1], [9, 0, 0])]


def pieces(x, lengths):
    return x.split(lengths.tolist())


def test_the_last_piece_is_a_size_as_the_others():
    def attention(x, lengths):
        return [F.scaled_dot_product_attention(piece[None], piece[None], piece[None]) for piece in pieces(x, lengths)]

    compiled = oxyfuel.compile(attention)
    for lengths in LENGTHS[:5]:
        torch.testing.assert_close(compiled(X, lengths), attention(X, lengths))
    assert oxyfuel.metrics()["graphs"] == 2 and not oxyfuel.metrics()["calls_eager"]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_padded_pieces(batch_first, side, training):
    def pad(x, lengths):
        return torch.nn.utils.rnn.pad_sequence(pieces(x, lengths), batch_first, 0.5, side)

    def run(function, lengths):
        x = X.clone().requires_grad_(training)
        result = function(x, lengths)
        if training:
            (result ** 2).sum().backward()
        return result.detach(), result.stride(), x.grad

    compiled = oxyfuel.compile(pad)
    for lengths in LENGTHS:
        torch.testing.assert_close(run(compiled, lengths), run(pad, lengths))
    assert oxyfuel.metrics()["graphs"] == 2 and not oxyfuel.metrics()["breaks"]


def test_sizes_that_are_always_unlikely_have_a_reason():
    def attention(x, mask):
        rows = x[mask][None]
        return F.scaled_dot_product_attention(rows, rows, rows)

    compiled = oxyfuel.compile(attention, dynamic=True)
    x, none = torch.randn(5, 3), torch.zeros(5, dtype=torch.bool)
    for _ in range(20):
        torch.testing.assert_close(compiled(x, none), attention(x, none))
    metrics = oxyfuel.metrics()
    assert metrics["calls_eager"] >= 19, (metrics["graphs"], metrics["recompile_reasons"])
    assert any("likely of sizes that depend on data" in record["reason"] for record in metrics["breaks"])
    two = torch.tensor([True, False, True, False, False])
    for _ in range(70):  # most calls go to eager at once, and one of them tries
        torch.testing.assert_close(compiled(x, two), attention(x, two))
    before = oxyfuel.metrics()["calls_eager"]
    compiled(x, two)
    assert oxyfuel.metrics()["calls_eager"] == before < 90


def test_elements_take_the_place_of_likely_sizes():
    def f(x, lengths):
        return [piece.cumsum(0) for piece in pieces(x, lengths)]

    compiled = oxyfuel.compile(f)
    ones = [torch.tensor(lengths) for lengths in ([2, 3, 4], [1, 1, 7], [1, 2, 6], [1, 3, 5], [1, 4, 4], [1, 5, 3], [1, 6, 2])]
    for lengths in ones * 3:
        torch.testing.assert_close(compiled(X, lengths), f(X, lengths))
    metrics = oxyfuel.metrics()
    assert metrics["calls_eager"] <= 3, metrics
