"""Writes that leave all elements as they are: autograd counts them as it does in eager."""

import pytest
import torch

import oxyfuel


def onto_itself(x):
    x.copy_(x)


def part_onto_itself(x):
    x[1:].copy_(x[1:])
    return x + 1


def times_one(x):
    x.mul_(1)
    return x.view(-1)


def copied_product(x):
    x.copy_(x * 1)
    return x.sum()


def with_another(x):
    x.add_(0)
    y = torch.zeros(3)
    y.copy_(x)
    return y


def swapped_back(x):
    x.neg_().neg_()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", [onto_itself, part_onto_itself, times_one, copied_product, with_another, swapped_back])
def test_the_version_changes(program, grad):
    compiled = oxyfuel.compile(program, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3)
        twin = x.clone()
        with torch.set_grad_enabled(grad):
            actual, expected = compiled(x), program(twin)
        assert torch.equal(x, twin) and x._version > 0 and twin._version > 0
        if expected is not None:
            torch.testing.assert_close(actual, expected)
            assert (actual.data_ptr() == x.data_ptr()) == (expected.data_ptr() == twin.data_ptr())
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_autograd_refuses_what_was_written_to():
    x = torch.randn(3)
    saved = (x * torch.ones(3, requires_grad=True)).sum()
    oxyfuel.compile(times_one, fullgraph=True)(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()
