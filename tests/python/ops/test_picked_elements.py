"""Elements that indices pick or place: every position in a vector, negative indices, indices out of range, and memory that ends."""

import ctypes
import mmap

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

TYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.bfloat16, torch.float16, torch.uint8, torch.bool]
# Less than a vector, whole vectors, and vectors with a rest, for 8 and 16 lanes.
WIDTHS = [1, 7, 8, 16, 17, 50, 67]

PICKS = {
    "gather": (lambda x, i: x.gather(1, i), False),
    "gather and compute": (lambda x, i: x.gather(1, i) == x.gather(1, i.flip(1)), False),
    "index of rows and columns": (lambda x, i: x[torch.arange(x.size(0)).unsqueeze(1), i], True),
    "index of columns": (lambda x, i: x[:, i[0]], True),
    "index of rows": (lambda x, i: x[i[:, 0] % x.size(0)], True),
    "index_select of columns": (lambda x, i: x.index_select(1, i[0]), False),
    "index_select of rows": (lambda x, i: x.index_select(0, i[:, 0] % x.size(0)), False),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x, i, 1), False),
    "scatter": (lambda x, i: x.scatter(1, i, torch.flip(x, (0, 1))[:, :1].expand(i.shape)), False),
    "index_put": (lambda x, i: x.index_put((torch.arange(x.size(0)).unsqueeze(1), i), x[:, :1].expand(i.shape)), True),
}


def elements(*size, dtype):
    return torch.randint(0, 100, size, generator=torch.Generator().manual_seed(len(size))).to(dtype)


def positions(rows, width, size):
    return torch.randint(0, size, (rows, width), generator=torch.Generator().manual_seed(width))


def outcome(function, *arguments):
    try:
        return function(*arguments), None
    except (IndexError, RuntimeError) as error:
        return None, type(error)


@pytest.mark.parametrize("dynamic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("name", PICKS)
def test_elements_are_eagers(name, dynamic):
    function, wraps = PICKS[name]
    oxyfuel.reset()
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for dtype in TYPES:
        for width in WIDTHS if dtype in (torch.float32, torch.float64) else WIDTHS[-2:]:
            x, i = elements(9, 7, dtype=dtype), positions(9, width, 7)
            torch.testing.assert_close(compiled(x, i), function(x, i), rtol=0, atol=0)
            if wraps:
                torch.testing.assert_close(compiled(x, i - 7), function(x, i - 7), rtol=0, atol=0)
                torch.testing.assert_close(compiled(x, i - 3), function(x, i - 3), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["gather", "index of rows and columns", "index of columns", "index_select of columns", "scatter", "index_put"])
def test_one_index_out_of_range(name):
    """At each position of whole and of partial vectors, on both sides; then the same function works again."""
    function, wraps = PICKS[name]
    oxyfuel.reset()
    compiled = oxyfuel.compile(function, dynamic=False)
    x = elements(3, 7, dtype=torch.float32)
    for width in (7, 16, 37):
        for column in range(width):
            for wrong in (7, -8, -1, 1 << 40, -(1 << 63)):
                i = positions(3, width, 7)
                i[0 if "columns" in name and name != "index of rows and columns" else column % 3, column] = wrong
                (expected, error), (actual, raised) = outcome(function, x, i), outcome(compiled, x, i)
                assert raised is error, (width, column, wrong)
                if error is None:
                    torch.testing.assert_close(actual, expected, rtol=0, atol=0)
    torch.testing.assert_close(compiled(x, positions(3, 37, 7)), function(x, positions(3, 37, 7)), rtol=0, atol=0)


def at_the_end_of_memory(x):
    """A copy of x whose last byte is the last one of a page; the next page may not be read."""
    page = mmap.PAGESIZE
    held = -(-x.numel() * x.element_size() // page) * page
    memory = mmap.mmap(-1, held + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address + held), ctypes.c_size_t(page), 0) == 0
    offset = held - x.numel() * x.element_size()
    copy = torch.frombuffer(memory, dtype=x.dtype, count=x.numel(), offset=offset).view(x.shape)
    return copy.copy_(x), memory


@pytest.mark.parametrize("dynamic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8], ids=str)
def test_nothing_behind_the_last_element_is_read(dtype, dynamic):
    for name in ("gather", "index of rows and columns", "index of columns", "index_select of rows", "scatter"):
        function, _ = PICKS[name]
        oxyfuel.reset()
        compiled = oxyfuel.compile(function, dynamic=dynamic)
        for width in (3, 13, 21):
            (x, _), (i, _) = at_the_end_of_memory(elements(5, 7, dtype=dtype)), at_the_end_of_memory(positions(5, width, 7))
            torch.testing.assert_close(compiled(x, i), function(x, i), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_elements_that_only_move_keep_their_bits(dtype):
    """The payload of a NaN included: nothing computes with them."""
    bits = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(256, 256)
    x, order = bits.view(dtype), torch.randperm(256, generator=torch.Generator().manual_seed(0))
    for function in (
        lambda x, i: x[i],
        lambda x, i: x.t().contiguous(),
        lambda x, i: F.embedding(i, x),
        lambda x, i: torch.cat([x[:100], x[3:]]),
        lambda x, i: x.gather(0, i.unsqueeze(1).expand(256, 256)),
    ):
        oxyfuel.reset()
        actual = oxyfuel.compile(function)(x, order)
        assert torch.equal(actual.view(torch.int16), function(x, order).view(torch.int16))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("divisor", [7, 1, -1, -7, 100])
def test_remainders_by_one_divisor(dtype, divisor):
    if divisor < 0 and dtype == torch.uint8:
        pytest.skip("a divisor that this type does not have")
    inside = torch.arange(61) % abs(divisor) * (1 if divisor > 0 else -1)
    around = torch.arange(61) - (0 if dtype == torch.uint8 else 30)
    least = torch.full((61,), torch.iinfo(dtype).min)
    function = lambda x: x % divisor  # noqa: E731
    oxyfuel.reset()
    compiled = oxyfuel.compile(function, dynamic=True)
    for x in (inside, around, least):
        assert torch.equal(compiled(x.to(dtype)), function(x.to(dtype)))


def test_a_divisor_of_zero_is_eagers_error():
    function = lambda x, n: x % n  # noqa: E731
    compiled = oxyfuel.compile(function, dynamic=True)
    x = torch.arange(20)
    assert torch.equal(compiled(x, torch.tensor(3)), function(x, torch.tensor(3)))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(x, torch.tensor(0))
