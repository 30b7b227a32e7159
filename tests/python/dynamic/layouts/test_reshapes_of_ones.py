"""reshape() of a batch that has one row at the first call: the graph serves every other batch, and views are views."""

import pytest
import torch
import torch.nn.functional as F
from size_checks import compiles, same

import oxyfuel


def heads(x):
    return x.unflatten(-1, (2, -1)).transpose(1, 2)


def merged(x):
    return heads(x).reshape(x.shape[0], -1) + 1


def attention(x):
    result = F.scaled_dot_product_attention(heads(x), heads(x), heads(x))
    return result.reshape(result.shape[0], -1, x.shape[1], result.shape[-1]).transpose(1, 2).contiguous().reshape(*x.shape[:-1], -1)


def flattened(x):
    return (x * 2).transpose(0, 1).reshape(-1, x.shape[-1]) + 1


def tokens(x):
    return F.linear(x.transpose(1, 2).reshape(-1, x.shape[1]), torch.ones(3, x.shape[1])).reshape(x.shape[0], -1, 3)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", [merged, attention, flattened, tokens])
def test_one_graph_for_all_batches(program, grad):
    compiled = oxyfuel.compile(program, dynamic=True, fullgraph=True)
    for batch in (1, 8, 3, 1):
        x = torch.randn(batch, 5, 8, requires_grad=grad)
        twin = x.detach().clone().requires_grad_(grad)
        actual, expected = compiled(x), program(twin)
        assert actual.stride() == expected.stride()
        torch.testing.assert_close(actual, expected)
        if grad:
            actual.sum().backward()
            expected.sum().backward()
            torch.testing.assert_close(x.grad, twin.grad)
    assert oxyfuel.metrics()["graphs"] == 1


def returned(x):
    return x.transpose(0, 1).reshape(-1, x.shape[-1])


def written(x):
    x.transpose(0, 1).reshape(-1, x.shape[-1]).mul_(2)
    return x + 1


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("program", [returned, written])
def test_what_can_be_told_is_a_view_where_it_is_one_in_eager(program, first):
    compiled = oxyfuel.compile(program, dynamic=True)
    for batch in (first, 1, 3, 2, 1):
        x = torch.randn(batch, 5, 8)
        twin = x.clone()
        actual, expected = compiled(x), program(twin)
        torch.testing.assert_close(actual, expected)
        torch.testing.assert_close(x, twin)
        assert (actual.data_ptr() == x.data_ptr()) == (expected.data_ptr() == twin.data_ptr())


def of_a_diagonal(x):
    view = x.diagonal(0).flatten()
    return view, view.var(0, correction=0)


def of_the_smaller_size(x):
    view = x[: min(x.size(0), x.size(1)), 0].transpose(0, 1).reshape(-1)
    return view, view.var(0, correction=0)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", [of_a_diagonal, of_the_smaller_size])
def test_a_computed_size_of_one_is_a_view(program, dynamic, grad):
    """The smaller one of two sizes is 1, and none of them was seen to be."""
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for sizes in ((1, 2, 9, 1), (1, 32, 9, 1), (4, 1, 9, 1), (1, 5, 3, 1), (3, 2, 4, 1)):
        x = torch.randn(sizes)
        with torch.set_grad_enabled(grad):
            actual, expected = compiled(x)[0], program(x)[0]
        same(actual, expected)
        assert (actual.data_ptr() == x.data_ptr()) == (expected.data_ptr() == x.data_ptr())


def positive_ones(x):
    chosen = x[x > 0] + 1
    chosen.reshape(-1).fill_(7)
    return chosen


def seen_whole(x):
    y = x + 1
    y.reshape(-1, x.shape[-1]).mul_(2)
    return y


@pytest.mark.parametrize("counts", [(0, 1, 3), (1, 0, 2), (3, 1, 0)])
def test_no_elements_and_numbers_of_data(counts):
    compiled = oxyfuel.compile(positive_ones), oxyfuel.compile(seen_whole, dynamic=True)
    for count in counts:
        x = torch.tensor([1] * count + [-1] * (3 - count))
        assert torch.equal(compiled[0](x), positive_ones(x))
        y = torch.randn(count, 2, 3)
        torch.testing.assert_close(compiled[1](y), seen_whole(y))
    x = torch.tensor([4])
    for value in (0, 1, -1, 2):
        x.fill_(value)
        assert torch.equal(compiled[0](x), positive_ones(x))


OTHER_STRIDES = {
    "rows that have gaps": lambda x: (x * 2)[..., :3].reshape(x.size(0), -1),
    "every second step": lambda x: (x + 1)[:, ::2].reshape(-1),
    "places that are swapped": lambda x: (x * 2).transpose(0, 1).reshape(x.size(0), x.size(1), -1),
    "columns beside each other": lambda x: x.transpose(0, 1).reshape(x.size(1), -1).sin(),
    "its own shape in another order": lambda x: x.permute(2, 1, 0).reshape(x.shape),
    "flattened": lambda x: x.permute(2, 0, 1).flatten(-2) + 1,
    "flattened from the first on": lambda x: (x * 2).permute(1, 2, 0).flatten(0, 1),
    "a batch of numbers": lambda x: (x * 2).permute(2, 1, 0).reshape(4, -1) if x.size(2) == 4 else x,
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", OTHER_STRIDES)
def test_a_view_of_ones_has_other_strides_than_a_copy(name, dynamic):
    program = OTHER_STRIDES[name]
    for sizes in ([(2, 3, 4), (5, 3, 4), (5, 1, 4), (1, 3, 4), (1, 1, 4), (2, 3, 1)], [(1, 3, 4), (5, 3, 4)], [(3, 1, 4), (5, 1, 4), (5, 2, 4)]):
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
        for size in sizes:
            x = torch.randn(size)
            same(compiled(x), program(x))


def test_heads_that_are_joined_are_compiled_once():
    def program(x):
        return x.view(x.size(0), x.size(1), 4, 6).transpose(1, 2).sin().transpose(1, 2).reshape(x.size(0), x.size(1), 24)

    compiled = oxyfuel.compile(program, dynamic=True)

    def calls():
        for size in ((2, 5, 24), (1, 5, 24), (2, 1, 24), (1, 1, 24), (7, 3, 24)):
            x = torch.randn(size)
            same(compiled(x), program(x))

    assert compiles(calls) == 1


def column_of_columns(x):
    column = x.flatten(-2)
    return column, x - column


def row_of_rows(x):
    return x.view(x.shape[0], -1) * 2, x.flatten(-2)


@pytest.mark.parametrize("program", [column_of_columns, row_of_rows])
def test_dimensions_of_one_keep_their_strides(program):
    """A view of a tensor whose dimensions of size 1 do not lie as those of memory without gaps; the order of a sum of both
    depends on them."""
    compiled = oxyfuel.compile(program, dynamic=True)
    with torch.inference_mode():
        for length in (17, 5, 8):
            x = torch.randn(1, length, 1).permute(1, 2, 0)
            for actual, expected in zip(compiled(x), program(x)):
                assert actual.stride() == expected.stride()
                assert actual.equal(expected)


def test_a_part_of_one_row_in_its_own_sizes():
    """Its size is one at most, as it is a part of a dimension."""

    def program(x):
        part = x[0:1, : x.shape[1] - 2]
        return part.view(part.shape), part.flatten()

    compiled = oxyfuel.compile(program, dynamic=True)
    for sizes in ((3, 9, 8), (2, 5, 4), (1, 4, 3)):
        x = torch.randn(*sizes)
        for actual, expected in zip(compiled(x), program(x)):
            assert actual.stride() == expected.stride()
            assert actual.equal(expected)
