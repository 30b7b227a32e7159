"""Calls of torch that take sizes that change."""

import pytest
import torch
from size_checks import compiles, same

import oxyfuel

CALLS = {
    "randn with a generator": lambda x: x + torch.randn(x.shape, generator=None, dtype=x.dtype),
    "rand with a generator": lambda x: x + torch.rand(x.size(0), 1, generator=None),
    "Size": lambda x: (x.view(torch.Size([x.size(1), x.size(0)])), torch.Size((2, x.size(0))).numel()),
    "Size of a shape": lambda x: x.new_ones(torch.Size(x.shape)) + x.new_zeros(torch.Size(n + 1 for n in x.shape)).sum(),
    "numel of a shape": lambda x: (x.new_zeros(x.shape.numel()), x.shape.numel(), x.size()[1:].numel()),
    "Size behind a tuple": lambda x: x.new_ones((x.size(0), 1) + torch.ones(2, 3).shape + (x.size(1),)),
    "Size before a tuple": lambda x: x.new_ones(torch.ones(2, 3).shape + (x.size(0),)),
    "an int where a tensor is expected": lambda x: x * torch.div(x.size(0), 2) + torch.mul(x.size(1), 3) + torch.sub(2, x.size(1)),
    "ints in lists of tensors": lambda x: x.sum() + torch.stack([torch.add(x.size(0), 1), torch.add(x.size(1), 2)]).sum(),
    "Size of none": lambda x: x + x.new_ones(torch.Size()) + x.new_ones(torch.Size([])),
    "broadcast_shapes": lambda x: x.new_ones(torch.broadcast_shapes(x.shape, (4, 1, 1))) * x,
    "_assert_async": lambda x: (torch._assert_async((x < 1e9).all()), x + 1)[1],
    "_assert_async of a size": lambda x: (torch._assert_async(torch.tensor(x.size(0) > 1)), x + 1)[1],
    "a copy of a slice": lambda x: torch.nn.functional.pad(x, (0, -(x.size(1) // 2))),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_graph(name):
    compiled = oxyfuel.compile(CALLS[name], dynamic=True, fullgraph=True)

    def run():
        for shape in [(2, 6), (3, 8), (5, 7)]:
            x = torch.arange(1.0 * shape[0] * shape[1]).view(shape)
            answers = []
            for function in (compiled, CALLS[name]):
                torch.manual_seed(5)
                answers.append(function(x))
            same(*answers)

    assert compiles(run) == 1


def test_size_of_what_is_no_int():
    compiled = oxyfuel.compile(lambda x: torch.Size([x.size(0), 2.5]), dynamic=True)
    with pytest.raises(TypeError, match="Size"):
        compiled(torch.ones(3))


@pytest.mark.parametrize("message", [(), ("too large",)])
def test_assertions_that_fail(message):
    def f(x, y):
        y.add_(1)
        torch._assert_async((x < 9).all(), *message)
        return x + y

    compiled = oxyfuel.compile(f)
    for value, size in ((1.0, 3), (2.0, 3), (3.0, 4), (10.0, 4), (10.0, 5), (4.0, 6)):
        for function in (compiled, f):
            y = torch.zeros(size)
            if value < 9:
                torch.testing.assert_close(function(torch.full((size,), value), y), torch.full((size,), value + 1))
            else:
                with pytest.raises(RuntimeError, match=message[0] if message else "nonzero"):
                    function(torch.full((size,), value), y)
