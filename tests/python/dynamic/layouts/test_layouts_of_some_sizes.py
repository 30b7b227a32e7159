"""What eager lays out or raises for some sizes only: layouts that a size of 1 changes, views that reach outside of a storage."""

import pytest
import torch
from size_checks import compiles, same

import oxyfuel


@pytest.mark.parametrize("equation", ["...i,ji->...j", "...i , ji->...j", "bhxi,ji->bhxj", "...i,ji"])
def test_einsum_with_nothing_to_sum_over_has_strides_of_an_operand(equation):
    compiled = oxyfuel.compile(lambda a, b: torch.einsum(equation, a, b) / 8, dynamic=True)
    for rows, summed in ((4, 15), (5, 1), (3, 7), (6, 1)):
        a, b = torch.randn(summed, rows, 2, 3).permute(3, 2, 1, 0), torch.randn(rows, summed)
        same(compiled(a, b), torch.einsum(equation, a, b) / 8)


def test_einsum_serves_all_batches():
    compiled = oxyfuel.compile(lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), dynamic=True)

    def calls():
        for batch, rows in ((4, 5), (1, 7), (8, 2), (2, 1)):
            a, b = torch.randn(batch, 3, rows, 16), torch.randn(batch, 3, rows, 16)
            same(compiled(a, b), torch.einsum("bhid,bhjd->bhij", a, b))

    assert compiles(calls) <= 2


def test_einsum_of_a_marked_size_is_no_violation():
    compiled = oxyfuel.compile(lambda x: torch.einsum("ik,jk->ij", x, x))
    x = torch.randn(2, 3)
    oxyfuel.mark_dynamic(x, 1, min=1, max=100)
    same(compiled(x), x @ x.T)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("reads", [False, True])
def test_unread_view_outside_of_the_storage_raises(dynamic, reads):
    def program(x):
        number = x.flatten()[0].item() if reads else 1
        x.as_strided((33,), (1,))
        return x + number

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for size in (40, 33, 64, 4, 0):
        x = torch.arange(size, dtype=torch.int32)
        if size >= 33:
            assert torch.equal(compiled(x), program(x))
            continue
        with pytest.raises((RuntimeError, IndexError)) as expected:
            program(x)
        with pytest.raises(type(expected.value)) as raised:
            compiled(x)
        assert str(raised.value) == str(expected.value)
    part = torch.arange(64)[:4]  # the storage goes on
    assert torch.equal(compiled(part), part + (0 if reads else 1))


def test_minimum_of_sizes_that_is_one_keeps_aliases():
    def diagonal(a, b):
        product = b * torch.diagonal(a.clamp(-1, 2), 0, -2, -1)
        return product, product[..., None]

    def written(a, b):
        product = b * torch.diagonal(a.clamp(-1, 2), 0, -2, -1)
        a.scatter_(0, torch.tensor([[0], [1], [1]]), 1)
        return product, product[..., None]

    for program in (diagonal, written):
        product, view = oxyfuel.compile(program, dynamic=True)(torch.tensor([[0], [1]]), torch.tensor([[1], [2]]))
        assert view._base is product


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("part", [lambda x, n: x[1 : 1 + 2 * n : 2], lambda x, n: x[n : 2 * n], lambda x, n: x[1 : n + 1].t()])
def test_a_window_without_an_offset_begins_where_its_tensor_does(part, dynamic):
    def function(x):
        return x.as_strided((31,), (1,)).cos(), x.as_strided((4,), (2,)) + 1

    def written(x):
        x.as_strided((3,), (1,)).mul_(2)
        return x.sin()

    def of_a_view(x):
        return x[1:].as_strided((3,), (1,)).cos()

    for program in (function, written, of_a_view):
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic)
        for n in (31, 7, 31, 9):
            x = torch.arange(float((2 * n + 1) * n)).view(-1, n)
            y = x.clone()
            same(compiled(part(x, n)), program(part(y, n)))
            same(x, y)
