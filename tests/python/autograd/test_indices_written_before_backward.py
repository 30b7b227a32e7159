"""Indices that are written to between the passes where autograd does not see it: an error in the backward pass, as in eager."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

PROGRAMS = {
    "gather": lambda x, index: x.gather(0, index).tanh(),
    "index_select": lambda x, index: x.index_select(0, index).tanh(),
    "take": lambda x, index: x.take(index).tanh(),
    "embedding": lambda x, index: F.embedding(index, x[:, None]).tanh(),
}


@pytest.mark.parametrize("written", [99, -99])
@pytest.mark.parametrize("name", PROGRAMS)
def test_indices_that_are_out_of_bounds(name, written):
    x, index = torch.arange(4.0).requires_grad_(), torch.tensor([1, 0, 3])
    oxyfuel.compile(PROGRAMS[name])(x, index).sum().backward()
    x.grad = None
    result = oxyfuel.compile(PROGRAMS[name])(x, index)
    index.data[1] = written
    with pytest.raises((RuntimeError, IndexError), match="out of"):
        result.sum().backward()


@pytest.mark.parametrize("name", PROGRAMS)
def test_indices_that_are_others(name):
    gradients = []
    for f in (PROGRAMS[name], oxyfuel.compile(PROGRAMS[name])):
        x, index = torch.arange(4.0).requires_grad_(), torch.tensor([1, 0, 3])
        result = f(x, index)
        index.data[1] = 2
        result.sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
