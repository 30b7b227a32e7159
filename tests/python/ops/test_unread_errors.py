"""Operators that raise on what their tensors hold, also where no element of theirs is moved, and where nobody reads them."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import tensor

import oxyfuel

NAN = math.nan
CALLS = {
    "index_reduce": (lambda x, i: x.index_reduce(0, i, torch.ones(3), "prod"), (torch.zeros(2), tensor([0, 5, 1])), (torch.zeros(2), tensor([0, 1, 1]))),
    "put": (lambda x, i: x.put(i, torch.ones(3)), (torch.zeros(2), tensor([0, 5, 1])), (torch.zeros(2), tensor([0, 1, 1]))),
    "put_": (lambda x, i: x.clone().put_(i, torch.ones(3), accumulate=True), (torch.zeros(2), tensor([0, 5, 1])), (torch.zeros(2), tensor([0, 1, 1]))),
    "masked_scatter": (lambda x, m, s: x.masked_scatter(m, s), (torch.zeros(4), tensor([True] * 4), torch.zeros(2)),
                       (torch.zeros(4), tensor([True, False] * 2), torch.zeros(2))),
    "histc": (lambda x: torch.histc(x, 4), (tensor([NAN, 1.0]),), (tensor([2.0, 1.0]),)),
    "histogram": (lambda x: torch.histogram(x, 4), (tensor([NAN, 1.0]),), (tensor([2.0, 1.0]),)),
    "searchsorted": (lambda x, s: torch.searchsorted(x, x, sorter=s), (tensor([1.0, 2.0]), tensor([0, 7])), (tensor([1.0, 2.0]), tensor([0, 1]))),
    "lu_unpack": (lambda x, p: torch.lu_unpack(x, p), (torch.eye(2), tensor([1, 9], dtype=torch.int32)), (torch.eye(2), tensor([1, 2], dtype=torch.int32))),
    "take": (lambda x, i: x.take(i), (torch.zeros(2), tensor([9])), (torch.zeros(2), tensor([1]))),
    "nll_loss": (F.nll_loss, (torch.zeros(2, 2), tensor([0, 9])), (torch.zeros(2, 2), tensor([0, 1]))),
    "multi_margin_loss": (F.multi_margin_loss, (torch.zeros(2, 2), tensor([0, 9])), (torch.zeros(2, 2), tensor([0, 1]))),
    "bernoulli": (torch.bernoulli, (tensor([-1.0, 1.0]),), (tensor([0.5, 1.0]),)),
    "poisson": (torch.poisson, (tensor([-1.0, 1.0]),), (tensor([0.5, 1.0]),)),
    "nansum": (torch.nansum, (torch.zeros(2, dtype=torch.complex64),), (torch.zeros(2),)),
    "nanmean": (torch.nanmean, (torch.zeros(2, dtype=torch.complex64),), (torch.zeros(2),)),
    "inv": (torch.linalg.inv, (torch.zeros(2, 2),), (torch.eye(2),)),
}


def outcome(function, arguments):
    torch.manual_seed(0)
    try:
        result = function(*arguments)
        return "returned", [t.shape for t in (result if isinstance(result, tuple) else (result,))]
    except Exception as error:
        return type(error), str(error).split("\n")[0]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_elements_that_eager_refuses(name, dynamic):
    operator, *calls = CALLS[name]

    def function(*arguments):
        operator(*arguments)
        return arguments[0] + 1

    for order in (calls, calls[::-1]):
        oxyfuel.reset()
        compiled = oxyfuel.compile(function, dynamic=dynamic)
        outcomes = [(outcome(function, call), outcome(compiled, call)) for call in (*order, *order)]
        assert all(expected == actual for expected, actual in outcomes)
        assert sum(expected[0] == "returned" for expected, _ in outcomes) == 2


INDEXED = {
    "index_select": lambda x, i: x.index_select(0, i),
    "index_select of columns": lambda x, i: x.mT.index_select(1, i),
    "added to itself": lambda x, i: x.clone().index_add_(0, i, x.index_select(0, i)),
    "embedding": lambda x, i: F.embedding(i[None], x) * 2,
    "embedding_bag": lambda x, i: F.embedding_bag(i, x, torch.tensor([0])),
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), x.new_ones(3, x.size(1))),
    "index_copy": lambda x, i: x.index_copy(0, i, x.new_ones(3, x.size(1))),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "index_reduce": lambda x, i: x.index_reduce(0, i, x.new_ones(3, x.size(1)), "prod"),
    "gather": lambda x, i: x.gather(0, i[:, None].expand(3, x.size(1))),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(3, x.size(1)), x.new_ones(3, x.size(1))),
    "nll_loss": lambda x, i: F.nll_loss(x.mT[None].permute(0, 2, 1).expand(3, 2, x.size(1)), i[:, None].expand(3, x.size(1)), reduction="none"),
    "division": lambda x, i: x.int() // (i[:1] - i[:1]),
}


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("name", INDEXED)
def test_indices_into_rows_without_elements(name, is_read, dynamic):
    operator = INDEXED[name]
    function = operator if is_read else lambda x, i: (operator(x, i), x + 1)[1]
    for widths in ((3, 2, 0, 1), (0, 2, 3, 0)):
        oxyfuel.reset()
        compiled = oxyfuel.compile(function, dynamic=dynamic)
        for width in widths:
            for indices in ([0, 1, 1], [0, 5, 1], [0, -5, 1]):
                arguments = torch.zeros(2, width), torch.tensor(indices)
                assert outcome(compiled, arguments) == outcome(function, arguments), (width, indices)


OF_SIZES = {
    "unique rows": (lambda x: x.unique(dim=1), [(3, 4), (2, 5), (0, 4), (4, 0), (0, 0), (3, 3)]),
    "unique rows, none at first": (lambda x: x.unique(dim=0, return_counts=True), [(4, 0), (0, 4), (3, 4), (0, 0)]),
    "statistics": (lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5), [(3, 2, 4), (5, 2, 1), (0, 2, 4), (3, 2, 0), (3, 0, 4), (2, 2, 2)]),
    "addmv": (lambda x: torch.addmv(x.new_ones(()), x, x.new_ones(x.size(1))), [(3, 4), (0, 4), (3, 0), (2, 2)]),
    "largest": (lambda x: x.amax(1), [(3, 4), (0, 4), (3, 0), (2, 2)]),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("name", OF_SIZES)
def test_sizes_that_eager_refuses(name, is_read, dynamic):
    operator, shapes = OF_SIZES[name]
    function = operator if is_read else lambda x: (operator(x), x + 1)[1]
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for shape in shapes:
        x = torch.ones(shape)
        assert outcome(compiled, (x,)) == outcome(function, (x,)), shape


MOST_TRIED_OUT = 1 << 16  # elements of tensors with which a kernel is asked for its types
# Kernels that lack a type, some of which take a tensor of it that has no elements.
LACKING = {
    "avg_pool3d": (lambda x: F.avg_pool3d(x, (3, 1, 1), stride=1), (2, 1, 5, 7, 6), torch.half),
    "conv2d": (lambda x: F.conv2d(x, torch.ones(2, 3, 3, 3, dtype=x.dtype)), (4, 3, 8, 8), torch.bool),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, torch.ones(3, 2, 3, 3, dtype=x.dtype)), (4, 3, 8, 8), torch.int32),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 3), (4, 3, 8, 8), torch.int8),
    "grid_sample": (lambda x: F.grid_sample(x, torch.zeros(len(x), 4, 4, 2, dtype=x.dtype)), (4, 3, 8, 8), torch.int32),
    "batch_norm": (lambda x: F.batch_norm(x, torch.zeros(3, dtype=x.dtype), torch.ones(3, dtype=x.dtype)), (4, 3, 8, 8), torch.int32),
    "matmul": (lambda x: x @ x.mT, (4, 3, 8), torch.bool),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("is_read_in_vain", [False, True])
@pytest.mark.parametrize("name", LACKING)
def test_types_that_eager_lacks(name, is_read_in_vain, dynamic):
    operator, sizes, dtype = LACKING[name]

    def program(x):
        result = operator(x)
        if is_read_in_vain:
            (result + 1).exp()
        return x.sum()

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    large = MOST_TRIED_OUT // math.prod(sizes[1:]) + 1
    for batch in (large, 0, sizes[0]):
        x = torch.ones((batch, *sizes[1:]), dtype=dtype)
        expected = outcome(program, (x,))
        assert batch == 0 or expected[0] != "returned"
        assert outcome(compiled, (x,)) == expected
