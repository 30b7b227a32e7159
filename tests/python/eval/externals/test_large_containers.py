"""Containers whose items are too many to be guarded one by one: what reads them all runs in eager."""

import pytest
import torch

import oxyfuel

X = torch.arange(3.0)
MANY = 150_000
REASON = "reads more than 100000 items"


def made(kind):
    if kind == "rows":
        return [list(range(1000)) for _ in range(MANY // 1000)]
    numbers = range(MANY)
    return {"list": list, "tuple": tuple, "dict": dict.fromkeys}[kind](numbers)


PROGRAMS = {
    "tensor": lambda x, c: x + torch.tensor(list(c)).sum(),
    "sum": lambda x, c: x + (sum(map(sum, c)) if isinstance(c[0], list) else sum(c)),
    "loop": lambda x, c: x + sum([len(str(item)) for item in c]),
    "generator": lambda x, c: x + max(len(str(item)) for item in c),
    "rows": lambda x, c: x + torch.tensor([[a for a in row] if isinstance(row, list) else [row] for row in c]).sum(),
}


@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "rows"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_whole_reads(name, kind):
    program, container = PROGRAMS[name], made(kind)
    compiled = oxyfuel.compile(program)
    for _ in range(2):
        torch.testing.assert_close(compiled(X, container), program(X, container))


@pytest.mark.parametrize("kind", ["list", "rows"])
def test_a_reason(kind):
    with pytest.raises(Exception, match=REASON):
        oxyfuel.compile(lambda x, c: x + torch.tensor(c).sum(), fullgraph=True)(X, made(kind))


def test_one_item_and_the_length_are_read_as_ever():
    container = made("list")
    compiled = oxyfuel.compile(lambda x, c: x * len(c) + c[7] + c[-1], fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(X, container), X * MANY + 7 + MANY - 1)


def test_a_list_that_is_read_twice_counts_once():
    container = list(range(60_000))
    compiled = oxyfuel.compile(lambda x, c: x + torch.tensor(c).sum() + torch.tensor(c).max(), fullgraph=True)
    torch.testing.assert_close(compiled(X, container), X + sum(container) + 59_999)


def test_rows_that_are_one_list_count_once():
    compiled = oxyfuel.compile(lambda x, c: x + torch.tensor(c).sum(), fullgraph=True)
    torch.testing.assert_close(compiled(X, [list(range(1000))] * 150), X + 150 * sum(range(1000)))


def test_what_was_taken_out_does_not_count():
    def program(x, c):
        c.clear()
        c.append(1)
        return x + torch.tensor(c).sum()

    torch.testing.assert_close(oxyfuel.compile(program, fullgraph=True)(X, made("list")), X + 1)


def test_writes():
    def program(x, c):
        c.append(5)
        c[3] = 8
        return x + c.pop() + c[3]

    ours, eager = made("list"), made("list")
    compiled = oxyfuel.compile(program)
    for _ in range(2):
        torch.testing.assert_close(compiled(X, ours), program(X, eager))
    assert ours == eager


def test_containers_that_contain_each_other():
    a, b = list(range(10)), list(range(10))
    a.append(b)
    b.append(a)
    compiled = oxyfuel.compile(lambda x, c: x + len(repr(c)))
    torch.testing.assert_close(compiled(X, a), X + len(repr(a)))
