"""LSTMCell, GRUCell and RNNCell: one graph for all batches, with eager's results and gradients, and its errors."""

import pytest
import torch
from size_checks import compiles, same, strides

import oxyfuel

CELLS = {
    "LSTM": lambda **options: torch.nn.LSTMCell(5, 7, **options),
    "GRU": lambda **options: torch.nn.GRUCell(5, 7, **options),
    "tanh": lambda **options: torch.nn.RNNCell(5, 7, **options),
    "relu": lambda **options: torch.nn.RNNCell(5, 7, nonlinearity="relu", **options),
}


def tensors_of(results):
    return list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CELLS)
def test_batches_that_change(name, dtype, bias):
    cell = CELLS[name](bias=bias, dtype=dtype)
    compiled = oxyfuel.compile(lambda x, hidden: cell(x, hidden))

    def calls():
        for batch in (4, 6, 1, 9, 2):
            state = torch.randn(batch, 7, dtype=dtype)
            hidden = (state, torch.randn(batch, 7, dtype=dtype)) if name == "LSTM" else state
            found = []
            for way in (compiled, cell):
                cell.zero_grad()
                x = torch.randn(batch, 5, dtype=dtype, generator=torch.Generator().manual_seed(batch)).requires_grad_()
                results = tensors_of(way(x, hidden))
                sum((k + 1) * r.square().sum() for k, r in enumerate(results)).backward()
                found.append([*(r.detach() for r in results), x.grad, *(p.grad for p in cell.parameters())])
            for got, expected in zip(*found):
                torch.testing.assert_close(got, expected)
                assert strides(got) == strides(expected)

    assert compiles(calls) <= 2 * 2  # forward and backward pass, for the first batch and for all others


@pytest.mark.parametrize("name", CELLS)
def test_a_loop_over_steps(name):
    cell = CELLS[name]()

    def program(x):
        hidden = None
        for step in x.unbind(1):
            hidden = cell(step, hidden)
        return tensors_of(hidden)

    compiled = oxyfuel.compile(program, dynamic=True, fullgraph=True)
    with torch.no_grad():

        def calls():
            for batch in (3, 1, 8):
                x = torch.randn(batch, 4, 5)
                same(compiled(x), program(x))

        assert compiles(calls) == 1


@pytest.mark.parametrize("name", CELLS)
def test_sizes_that_do_not_fit_are_eagers_error(name):
    cell = CELLS[name]()
    compiled = oxyfuel.compile(lambda x, h: cell(x, (h, h) if name == "LSTM" else h), dynamic=True)
    for x, h in ((torch.randn(3, 6), torch.randn(3, 7)), (torch.randn(3, 5), torch.randn(4, 7)), (torch.randn(3, 5), torch.randn(3, 8))):
        with pytest.raises(RuntimeError) as expected:
            cell(x, (h, h) if name == "LSTM" else h)
        with pytest.raises(RuntimeError) as found:
            compiled(x, h)
        assert str(found.value) == str(expected.value)
