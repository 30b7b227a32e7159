"""A reshape of what only data size is a view where eager's is, with eager's strides."""

import pytest
import torch
from size_checks import same

import oxyfuel

# unique() moves the dimension that it counts, so that its result has gaps between the elements of a row.
PROGRAMS = {
    "numbers": (lambda x: x.unique(dim=1).reshape(1, 6, 6), [(6, 6), (6, 6)]),
    "numbers beside 1": (lambda x: x[..., None].unique(dim=1).reshape(1, 6, 6), [(6, 6), (6, 6)]),
    "numbers, of several sizes": (lambda x: x.unique(dim=1).reshape(6, 6) * 2, [(6, 6), (4, 9), (9, 4), (6, 6)]),
    "one row": (lambda x: x.unique(dim=1).reshape(-1), [(6, 6), (4, 9), (1, 5), (5, 1)]),
    "split": (lambda x: x.unique(dim=1).reshape(2, -1, 6), [(2, 6), (4, 6), (6, 4)]),
    "rows of rows": (lambda x: x.unique(dim=1).reshape(2, -1, x.size(1)), [(2, 6), (4, 6), (6, 3)]),
    "of both": (lambda x: x.unique(dim=0).unique(dim=1).reshape(3, -1), [(3, 5), (6, 5), (3, 1), (1, 6)]),
    "columns beside": (lambda x: x.unique(dim=1)[..., None].expand(-1, -1, 2).reshape(x.size(0), -1), [(2, 6), (4, 6), (1, 3)]),
    "flattened": (lambda x: x.unique(dim=1)[:, None].flatten(1), [(2, 6), (4, 6), (1, 3)]),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_are_those_of_eager(name, dynamic):
    program, sizes = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for size in sizes * 2:
        torch.manual_seed(1)
        x = torch.randn(size)
        same(compiled(x), program(x))


def test_views_share_memory():
    def written(x):
        y = x.unique(dim=1)
        y.reshape(-1, 6).add_(1)
        return y

    compiled = oxyfuel.compile(written, dynamic=True)
    for size in [(6, 6), (2, 6), (6, 2), (4, 9), (1, 6)] * 2:
        x = torch.randn(size)
        same(compiled(x), written(x))


def test_unbacked_sizes():
    def program(x):
        y = x.t() * 2
        return y.reshape(-1), y[:, None].reshape(x.size(1), -1), x.t().exp().reshape(-1, 1) + 1

    compiled = oxyfuel.compile(program)
    for size in [(6, 6), (2, 6), (6, 2), (4, 9)] * 2:
        x = torch.randn(size)
        for dim in range(2):
            oxyfuel.mark_unbacked(x, dim)
        same(compiled(x), program(x))
