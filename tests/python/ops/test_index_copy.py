"""index_copy: new tensors and writes in place, as caches of attention use it."""

import contextlib

import pytest
import torch

import oxyfuel


def same(function, *make):
    expected_arguments, actual_arguments = ([m() for m in make] for _ in range(2))
    expected = function(*expected_arguments)
    oxyfuel.reset()
    actual = oxyfuel.compile(function)(*actual_arguments)
    for a, b in zip([actual, *actual_arguments], [expected, *expected_arguments], strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
        assert a.stride() == b.stride()


def seeded(*size, dtype=torch.float32, layout=torch.contiguous_format):
    return lambda: torch.randn(size, generator=torch.Generator().manual_seed(len(size))).to(dtype).contiguous(memory_format=layout)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_along_each_dimension(dim, dtype):
    size = [5, 6, 7]
    source = list(size)
    source[dim] = 3
    where = lambda: torch.tensor([3, 0, 4])  # noqa: E731
    same(lambda x, i, s: torch.index_copy(x, dim, i, s * 2), seeded(*size, dtype=dtype), where, seeded(*source, dtype=dtype))
    same(lambda x, i, s: x.index_copy_(dim, i, s * 2) + 1, seeded(*size, dtype=dtype), where, seeded(*source, dtype=dtype))
    same(lambda x, i, s: x.transpose(0, 2).index_copy_(2, i, s.transpose(0, 2)), seeded(*size, dtype=dtype), where, seeded(3, 6, 7, dtype=dtype))


def test_one_place_and_none():
    same(lambda x, i, s: torch.index_copy(x, 1, i, s), seeded(4, 5), lambda: torch.tensor(2), seeded(4, 1))
    same(lambda x, i, s: torch.index_copy(x, 1, i, s), seeded(4, 5), lambda: torch.empty(0, dtype=torch.int64), seeded(4, 0))
    same(lambda x, i, s: torch.index_copy(x, 0, i, s), lambda: torch.tensor(1.5), lambda: torch.tensor([0]), lambda: torch.tensor(2.5))


@contextlib.contextmanager
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("in_order", [one_thread, deterministic_algorithms])
def test_the_last_of_several_writes_to_a_place_wins(in_order):
    """As in eager, whose order is up to chance with several threads unless deterministic algorithms are asked for."""
    where = torch.tensor([1, 0, 1, 1, 0] * 400)
    x, rows = seeded(2, 64)(), seeded(2000, 64)()
    expected = x.clone()
    for place, row in zip(where.tolist(), rows):
        expected[place] = row
    oxyfuel.reset()
    writes = [
        oxyfuel.compile(lambda x, i, s: torch.index_copy(x, 0, i, s)),
        oxyfuel.compile(lambda x, i, s: torch.index_put(x, (i,), s)),
    ]
    with in_order():
        for write in writes:
            for _ in range(20):
                assert torch.equal(write(x, where, rows), expected)


def test_sums_are_in_order_under_deterministic_algorithms():
    where = torch.tensor([1, 0, 1, 1, 0] * 400)
    x, rows = seeded(2, 64)(), seeded(2000, 64)()
    oxyfuel.reset()
    sums = [
        lambda x, i, s: torch.index_put(x, (i,), s, accumulate=True),
        lambda x, i, s: x.scatter_add(0, i[:, None].expand(s.size()), s),
    ]
    with deterministic_algorithms():
        for add in sums:
            compiled, expected = oxyfuel.compile(add), add(x, where, rows)
            for _ in range(20):
                assert torch.equal(compiled(x, where, rows), expected)


@pytest.mark.parametrize("place", [-1, 5])
def test_places_that_do_not_exist(place):
    def write(x, i, s):
        return x.index_copy_(0, i, s)

    oxyfuel.reset()
    compiled = oxyfuel.compile(write)
    compiled(torch.zeros(5, 2), torch.tensor([1]), torch.ones(1, 2))
    x = torch.zeros(5, 2)
    with pytest.raises(IndexError) as expected:
        write(torch.zeros(5, 2), torch.tensor([place]), torch.ones(1, 2))
    with pytest.raises(IndexError) as actual:
        compiled(x, torch.tensor([place]), torch.ones(1, 2))
    assert str(actual.value) == str(expected.value) and not x.any()


def test_a_cache_is_written_in_place():
    oxyfuel.reset()

    def step(cache, position, key):
        cache.index_copy_(2, position, key * 1.5)
        return (cache * key).sum(-1)

    compiled = oxyfuel.compile(step)
    mine, other = torch.zeros(1, 2, 16, 8), torch.zeros(1, 2, 16, 8)
    for place in range(6):
        key = torch.randn(1, 2, 1, 8)
        torch.testing.assert_close(compiled(mine, torch.tensor([place]), key), step(other, torch.tensor([place]), key))
        torch.testing.assert_close(mine, other)
    metrics = oxyfuel.metrics()
    assert metrics["extern_calls"] == 0 and not metrics["breaks"]
