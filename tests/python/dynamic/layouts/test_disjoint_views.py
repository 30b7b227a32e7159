"""Writes to a view while another one is read, where sizes vary: what never shares an element is one graph, anything else is
compiled with numbers or left to eager."""

import pytest
import torch
from size_checks import compiles, same

import oxyfuel


def interleaved(x):
    frequencies = x.cos()
    first = frequencies[0]
    for dim, offset in enumerate((1, 2), start=1):
        index = slice(offset, 6, 3)
        first[..., index] = frequencies[dim, ..., index]
    return torch.cat((first, first), dim=-1)


def halves_of_columns(x):
    y = x + 1
    y[..., :4] = y[..., 4:]
    return y


def even_and_odd_columns(x):
    y = x + 1
    y[..., 1::2].copy_(y[..., ::2])
    return y


def neighbouring_planes(x):
    y = x + 1
    y[1] += y[0]
    y[0] *= y[2]
    return y


def transposed(x):
    y = (x + 1).permute(2, 0, 1)
    y[:4] = y[4:]
    return y


def flattened(x):
    y = (x + 1).flatten(0, 1)
    y[:, :2] = y[:, 6:]
    return y


def halves_of_rows(x):
    y = x + 1
    half = y.size(1) // 2
    y[:, :half] = y[:, half : 2 * half]
    return y


def each_from_its_neighbour(x):
    y = (x + 1).clone()
    y[:, 1:, :4] = y[:, :-1, 4:]
    return y


def checks(program):
    oxyfuel.reset()
    compiled = oxyfuel.compile(program)

    def check(rows, columns):
        x = torch.randn(3, rows, columns, 8, generator=torch.Generator().manual_seed(rows)).squeeze(1)
        same(compiled(x), program(x))

    return check


DISJOINT = [interleaved, halves_of_columns, even_and_odd_columns, neighbouring_planes, transposed, flattened]


@pytest.mark.parametrize("program", DISJOINT)
def test_disjoint_views_are_one_graph(program):
    check = checks(program)
    for sizes in ((1, 4), (1, 6)):
        check(*sizes)
    assert compiles(lambda: [check(1, n) for n in (3, 12, 7)]) == 0
    assert oxyfuel.metrics()["graphs"] == 2


@pytest.mark.parametrize("program", DISJOINT[:5])
def test_disjoint_views_of_sizes_that_all_vary(program):
    oxyfuel.reset()
    compiled = oxyfuel.compile(program, dynamic=True)
    count = {interleaved: (3, 5, 8), halves_of_columns: (2, 5, 8)}.get(program, (3, 5, 8))
    for sizes in (count, (count[0], 7, 8), (count[0], 2, 8), (count[0], 1, 8), (count[0], 0, 8)):
        x = torch.randn(*sizes)
        same(compiled(x), program(x))
    assert not oxyfuel.metrics()["breaks"]


@pytest.mark.parametrize("program", [halves_of_rows, each_from_its_neighbour])
def test_views_that_only_numbers_tell_apart(program):
    check = checks(program)
    for n in (4, 6, 8, 5, 2, 4):
        check(1, n)


def test_overlapping_views_are_left_to_eager():
    def shifted(x):
        y = x + 1
        y[1:] = y[:-1]
        return y

    oxyfuel.reset()
    compiled = oxyfuel.compile(shifted)
    for n in (2, 1):  # nothing overlaps yet
        x = torch.randn(n, 3)
        same(compiled(x), shifted(x))
    for n in (4, 6):
        messages = []
        for function in (compiled, shifted):
            with pytest.raises(RuntimeError) as error:
                function(torch.randn(n, 3))
            messages.append(str(error.value).splitlines()[0])
        assert messages[0] == messages[1]
