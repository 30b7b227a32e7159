"""Kernels that differ in sizes, strides and offsets alone are compiled once."""

import torch

import oxyfuel


def _compiled(fn, *args):
    oxyfuel.reset()
    with torch.no_grad():
        result = oxyfuel.compile(fn)(*args)
    return result, oxyfuel.metrics()


def _blocks(x, layers):
    """What a dense block does: each layer sees all results so far."""
    found = [x]
    for k in range(layers):
        joined = torch.cat(found, 1)
        found.append(torch.relu(joined * 0.5 + k)[:, :32] + 1)
    return torch.cat(found, 1)


def test_the_number_of_kernels_grows_slower_than_that_of_layers():
    x = torch.randn(2, 32, 8, 8)
    few, few_metrics = _compiled(lambda x: _blocks(x, 6), x)
    many, many_metrics = _compiled(lambda x: _blocks(x, 12), x)
    torch.testing.assert_close(few, _blocks(x, 6))
    torch.testing.assert_close(many, _blocks(x, 12))
    assert many_metrics["launches"] > few_metrics["launches"] + 20
    assert many_metrics["kernels"] < many_metrics["launches"] / 3
