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


@pytest.mark.parametrize("write", [lambda index: index.data.add_(1), lambda index: index.add_(1)], ids=["data", "itself"])
@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("size", [1, 3])
def test_indices_of_take_along_dim_are_computed_anew(size, dynamic, write):
    """They are wrapped into the dimension before they are read, so that nothing depends on what becomes of those given."""

    def program(x, index):
        taken = torch.take_along_dim(x, index, 1)
        write(index)
        return taken.tanh()

    results = []
    for f in (program, oxyfuel.compile(program, dynamic=dynamic)):
        x, index = torch.arange(4.0 * size).view(4, size).requires_grad_(), torch.zeros(4, 1, dtype=torch.long)
        result = f(x, index)
        (gradient,) = torch.autograd.grad(result.sum(), x)
        results.append((result.detach(), gradient, index))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_indices_of_take_along_dim_that_are_out_of_range(dynamic):
    compiled = oxyfuel.compile(lambda x, index: torch.take_along_dim(x, index, -1), dynamic=dynamic)
    for sizes in ((4, 3), (5, 7), (1, 2)):
        x = torch.randn(sizes)
        for index in (torch.tensor([[-1]]), torch.arange(-9, 12).expand(sizes[0], -1)):
            torch.testing.assert_close(compiled(x, index), torch.take_along_dim(x, index, -1))


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
