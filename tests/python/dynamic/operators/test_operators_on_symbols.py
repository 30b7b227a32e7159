"""Operators whose rules have to know symbols, forward and backward: one compilation for all sizes, with eager's answers."""

import pytest
import torch

import oxyfuel
from devices import device
from size_programs import PROGRAMS

SIZES = (5, 3, 8)


def results(function, x):
    """The result and the gradient of something of it."""
    x = x.clone().requires_grad_()
    oxyfuel.mark_unbacked(x, 0)
    result = function(x)
    return result, torch.autograd.grad((result * result).sum(), x)[0]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_one_compilation(number, gradient):
    function, size = PROGRAMS[number]
    compiled = oxyfuel.compile(function, fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    for n in SIZES:
        x = torch.rand(n, *size, device=device()) + 0.1
        if gradient:
            for got, expected in zip(results(compiled, x), results(function, x)):
                torch.testing.assert_close(got, expected)
                assert got.stride() == expected.stride()
        else:
            oxyfuel.mark_unbacked(x, 0)
            torch.testing.assert_close(compiled(x), function(x))
    assert oxyfuel.metrics()["graphs"] == before + 1


def test_transformer_encoder_layer():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval().to(device())
    compiled = oxyfuel.compile(layer, fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    with torch.no_grad():
        for n in SIZES:
            x = torch.randn(n, 3, 4, device=device())
            oxyfuel.mark_unbacked(x, 0)
            torch.testing.assert_close(compiled(x), layer(x))
    assert oxyfuel.metrics()["graphs"] == before + 1


def test_a_size_to_a_power():
    compiled = oxyfuel.compile(lambda x: x.size(0) ** x, fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    for n in SIZES:
        x = torch.rand(n, 4, device=device())
        oxyfuel.mark_unbacked(x, 0)
        torch.testing.assert_close(compiled(x), n**x)
    assert oxyfuel.metrics()["graphs"] == before + 1
