"""What eager copies for some sizes and views for others: told apart wherever the program or its caller can see it."""

import pytest
import torch

import oxyfuel


def channels_last(channels, rows):
    return torch.randn(2, channels, rows, 1).to(memory_format=torch.channels_last)


def swapped(rows, columns):
    return torch.randn(columns, rows).T


def with_gaps(rows, columns):
    return torch.randn(rows, 2 * columns + 1)[:, 1 : 1 + 2 * columns : 2]


def reshaped(x):
    return x.reshape(-1)


def flattened_and_written(x):
    y = x.flatten(1)
    y.mul_(2)
    return y.sum()


def written_behind(x):
    y = x.flatten(1)
    x.add_(1)
    return y * 1


def contiguous(x):
    return x.contiguous()


def contiguous_and_written(x):
    x.contiguous().add_(1)
    return x.sum()


def unflattened_and_written(x):
    x.flatten().unflatten(-1, (-1, 1)).mul_(2)
    return x * 1


FUNCTIONS = [reshaped, flattened_and_written, written_behind, contiguous, contiguous_and_written, unflattened_and_written]
LAYOUTS = {
    channels_last: [(16, 4), (1, 4), (3, 1), (8, 9), (1, 1)],
    swapped: [(3, 4), (1, 4), (4, 1), (2, 7), (1, 1)],
    with_gaps: [(17, 3), (1, 17), (4, 1), (2, 7), (1, 1)],
}


def shares(a, b):
    return a.data_ptr() == b.data_ptr()


def as_it_is(x):
    """A copy with the same strides and offset."""
    storage = torch.empty(x.storage_offset() + 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride())))
    return storage.as_strided(x.shape, x.stride(), x.storage_offset()).copy_(x)


@pytest.mark.parametrize("make", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_eager_and_compiled_share_alike(function, make):
    for first in range(5):
        compiled = oxyfuel.compile(function, dynamic=True)
        sizes = LAYOUTS[make]
        for size in sizes[first:] + sizes[:first]:
            x = make(*size)
            y = as_it_is(x)
            expected, got = function(x), compiled(y)
            assert torch.equal(x, y), size
            torch.testing.assert_close(got, expected)
            assert shares(got, y) == shares(expected, x) and (got.numel() < 2 or got.stride() == expected.stride()), size


@pytest.mark.parametrize("function", [flattened_and_written, contiguous_and_written], ids=lambda f: f.__name__)
def test_a_write_to_a_leaf_is_refused_alike(function):
    compiled = oxyfuel.compile(function, dynamic=True)
    for size in [(3, 4), (1, 4), (2, 7)]:
        x = swapped(*size)
        raised = []
        for f in (function, compiled):
            try:
                f(as_it_is(x).requires_grad_())
                raised.append(None)
            except RuntimeError as error:
                raised.append(str(error))
        assert raised[0] == raised[1], size


def test_what_nobody_can_tell_costs_no_guard():
    """Heads that are joined, as attention does it: one graph for one row and for many."""

    def function(x):
        heads = x.view(x.size(0), x.size(1), 2, 4).transpose(1, 2) * 2
        joined = heads.transpose(1, 2).reshape(x.size(0), x.size(1), 8)
        joined.add_(1)  # nobody reads the heads any more
        return joined * 2

    compiled = oxyfuel.compile(function, dynamic=True)
    before = oxyfuel.metrics()["graphs"]
    for rows, columns in ((3, 5), (1, 5), (2, 1), (1, 1), (4, 2)):
        x = torch.randn(rows, columns, 8)
        torch.testing.assert_close(compiled(x), function(x))
    assert oxyfuel.metrics()["graphs"] == before + 1
