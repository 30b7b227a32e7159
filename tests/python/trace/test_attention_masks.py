"""A mask of sizes alone that hides and adds nothing is no mask, and one that hides what comes later is `is_causal`. Any other one stays."""

import pytest
import torch
from torch.nn import functional as F

import oxyfuel

ROWS = 6


def rows(q):
    return torch.arange(q.shape[2])


MASKS = {
    "of sizes": (lambda q, x: (rows(q)[:, None] >= 0).expand(q.shape[0], 1, q.shape[2], q.shape[2]), False),
    "behind no others": (lambda q, x: ((rows(q) + 0)[:, None] >= 0).expand(q.shape[0], 1, q.shape[2], q.shape[2]), False),
    "behind others": (lambda q, x: ((rows(q) - 2)[:, None] >= 0).expand(q.shape[0], 1, q.shape[2], q.shape[2]), True),
    "of two": (lambda q, x: (rows(q) >= 0)[None, :] & torch.ones(ROWS, 1, dtype=torch.bool), False),
    "of neighbours": (lambda q, x: (rows(q)[:, None] - rows(q)[None, :]).abs() < 2, True),
    "from below 0": (lambda q, x: (torch.arange(-1, q.shape[2] - 1) >= 0).expand(q.shape[2], q.shape[2]), True),
    "of data": (lambda q, x: (x >= 0)[None, :].expand(q.shape[2], q.shape[2]), True),
    "of zeros that are added": (lambda q, x: torch.zeros(q.shape[2], q.shape[2]), False),
    "of zeros for each head": (lambda q, x: torch.full((1, q.shape[1], q.shape[2], q.shape[2]), 0.0) + 0, False),
    "of ones that are added": (lambda q, x: torch.ones(q.shape[2], q.shape[2]), True),
    "of data that is added": (lambda q, x: (x * 0).expand(q.shape[2], q.shape[2]), True),
    "that hides all": (lambda q, x: torch.zeros(q.shape[2], q.shape[2], dtype=torch.bool), True),
}


def ones(q):
    return torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)


# Whether the masks are causal.
TRIANGLES = {
    "compared": (lambda q, x: rows(q)[:, None] >= rows(q)[None, :], True),
    "the other way round": (lambda q, x: rows(q)[:, None] <= rows(q)[None, :], False),
    "without the diagonal": (lambda q, x: rows(q)[:, None] > rows(q)[None, :], False),
    "lower": (lambda q, x: ones(q).tril(), True),
    "lower and one more": (lambda q, x: ones(q).tril(1), False),
    "not upper": (lambda q, x: ~torch.triu(ones(q), diagonal=1), True),
    "of floats": (lambda q, x: torch.tril(torch.ones(q.shape[2], q.shape[2])) != 0, True),
    "transposed": (lambda q, x: ones(q).triu().t(), True),
    "in a larger one": (lambda q, x: torch.ones(32, 32, dtype=torch.bool).tril()[: q.shape[2], : q.shape[2]], True),
    "for each head": (lambda q, x: ones(q).tril()[None, None].expand(q.shape[0], q.shape[1], -1, -1), True),
    "of positions": (lambda q, x: (rows(q) + 3)[:, None] >= (rows(q) + 3)[None, :], True),
    "of positions that differ": (lambda q, x: (rows(q) + 1)[:, None] >= rows(q)[None, :], False),
    "with data": (lambda q, x: ones(q).tril() & (x < 9)[None, :], False),
    "of one row": (lambda q, x: (rows(q) >= 3)[None, :], False),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", TRIANGLES)
def test_causal_masks(name, dynamic):
    make, is_causal = TRIANGLES[name]
    graphs = []

    def function(q, x):
        return F.scaled_dot_product_attention(q, q, q, make(q, x), scale=0.5)

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    q, x = torch.randn(2, 3, ROWS, 8), torch.arange(ROWS) - 2.0
    compiled = oxyfuel.compile(function, dynamic=dynamic, fullgraph=True)
    torch.testing.assert_close(compiled(q, x), function(q, x))
    if dynamic:
        longer = torch.randn(2, 3, ROWS + 5, 8), torch.arange(ROWS + 5) - 2.0
        torch.testing.assert_close(compiled(*longer), function(*longer))
    oxyfuel.compile(function, fullgraph=True, backend=backend)(q, x)
    (attention,) = [node for node in graphs[0].graph.nodes if "attention" in str(node.target)]
    assert attention.kwargs.get("is_causal", False) == is_causal
    assert (attention.args[3] is None) == is_causal


def test_a_causal_mask_of_other_lengths_and_of_gradients():
    def function(q, k):
        return F.scaled_dot_product_attention(q, k, k, torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril())

    for lengths in ((5, 9), (9, 5), (1, 4)):
        mine = [torch.randn(2, 3, length, 8, requires_grad=True) for length in lengths]
        theirs = [tensor.detach().clone().requires_grad_() for tensor in mine]
        result, other = oxyfuel.compile(function, fullgraph=True)(*mine), function(*theirs)
        torch.testing.assert_close(result, other)
        result.square().sum().backward()
        other.square().sum().backward()
        for tensor, twin in zip(mine, theirs, strict=True):
            torch.testing.assert_close(tensor.grad, twin.grad)


MORE = {
    "all true": lambda q: torch.ones(4, 1, q.shape[2], q.shape[2], dtype=torch.bool),
    "causal": lambda q: ones(q).tril().expand(4, 1, -1, -1),
    "for other heads": lambda q: ones(q).tril().expand(2, 3, -1, -1),
    "of another dimension": lambda q: ones(q).expand(3, 1, 1, -1, -1),
    "of more rows": lambda q: torch.ones(5, q.shape[2], dtype=torch.bool),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("shape", [(1, 1, ROWS, 8), (1, 1, 1, 8)])
def test_a_mask_that_repeats_the_query_stays(name, dynamic, shape):
    def function(q):
        return F.scaled_dot_product_attention(q, q, q, MORE[name](q))

    def outcome(program, q):
        try:
            return program(q)
        except RuntimeError as error:
            return str(error).splitlines()[0]

    q = torch.randn(shape)
    expected, found = outcome(function, q), outcome(oxyfuel.compile(function, dynamic=dynamic), q)
    if isinstance(expected, str):
        assert found == expected
    else:
        torch.testing.assert_close(found, expected)


# Eager converts both sides to one type before it compares, adds or combines them.
TYPES = {
    "a negative number and bytes": lambda n, x: torch.full((n, n), 5, dtype=torch.uint8) >= -1,
    "a large number and bytes": lambda n, x: torch.full((n, n), 100, dtype=torch.uint8) < 256,
    "a large number and signed bytes": lambda n, x: torch.full((n, n), 100, dtype=torch.int8) < 300,
    "a large number and short integers": lambda n, x: torch.full((n, n), 100, dtype=torch.int16) < 65536 + 50,
    "a large number and integers": lambda n, x: torch.full((n, n), 100, dtype=torch.int32) < 2**32 + 50,
    "a negative tensor and bytes": lambda n, x: torch.full((n, n), 5, dtype=torch.uint8) >= torch.full((), -1),
    "a triangle of bytes": lambda n, x: torch.ones(n, n, dtype=torch.uint8).tril() > -1,
    "integers and halves": lambda n, x: (torch.arange(257, 257 + n) > torch.full((n,), 256, dtype=torch.bfloat16)).expand(n, n),
    "a difference of halves": lambda n, x: (torch.full((n, n), 401) - torch.full((n, n), 200, dtype=torch.bfloat16)) > 200,
    "a fraction": lambda n, x: (torch.arange(n) > 0.5).expand(n, n),
    "bits of data": lambda n, x: (torch.ones(n, n, dtype=torch.int64) | x) == 1,
    "no bits of data": lambda n, x: (torch.zeros(n, n, dtype=torch.int64) & x) == 0,
    "truth values and data": lambda n, x: (torch.ones(n, n, dtype=torch.bool) | x) == 1,
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", TYPES)
def test_types(name, dynamic):
    def function(q, x):
        return F.scaled_dot_product_attention(q, q, q, TYPES[name](q.shape[2], x) | (torch.eye(q.shape[2]) == 1))

    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for rows in (ROWS, ROWS + 3):
        q, x = torch.randn(2, 3, rows, 8), torch.arange(rows) % 4 + 1
        torch.testing.assert_close(compiled(q, x), function(q, x))


def test_conditions_within_conditions_take_no_time():
    def function(q):
        r = rows(q)
        m = r >= 1
        for k in range(40):
            m = torch.where(m, r >= k - 3, r < k + 3)
        return F.scaled_dot_product_attention(q, q, q, m.expand(q.shape[2], q.shape[2]))

    q = torch.randn(2, 3, ROWS, 8)
    torch.testing.assert_close(oxyfuel.compile(function)(q), function(q))


REFUSED = {
    "a mask of one dimension": lambda q: F.scaled_dot_product_attention(q, q, q, torch.ones(ROWS, dtype=torch.bool)),
    "fewer values than keys": lambda q: F.scaled_dot_product_attention(q, q, q[:, :, 2:], ones(q)),
    "fewer values than keys, causal": lambda q: F.scaled_dot_product_attention(q, q, q[:, :, 2:], ones(q).tril()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses(name):
    q = torch.randn(2, 3, ROWS, 8)
    with pytest.raises(Exception) as eager:  # noqa: PT011
        REFUSED[name](q)
    with pytest.raises(type(eager.value)) as ours:
        oxyfuel.compile(REFUSED[name])(q)
    assert str(ours.value).splitlines()[0] == str(eager.value).splitlines()[0]


UNREAD = {
    "bits": lambda t, x: (t[torch.ones(3, dtype=torch.int64) | x], t + 1)[1],
    "bytes": lambda t, x: (t[torch.where(torch.full((3,), 5, dtype=torch.uint8) >= -1, 1, 100)], t + 1)[1],
    "from the end": lambda t, x: (t[torch.arange(3) - 5], t + 1)[1],
    "right ones": lambda t, x: (t[torch.arange(3) - 4], t + 1)[1],
}


@pytest.mark.parametrize("name", UNREAD)
def test_an_index_that_nobody_reads(name):
    def outcome(program):
        try:
            return program(torch.arange(4.0), torch.tensor([0, 1000000, 0]))
        except IndexError as error:
            return str(error)

    expected, found = outcome(UNREAD[name]), outcome(oxyfuel.compile(UNREAD[name]))
    assert found == expected if isinstance(expected, str) else torch.equal(found, expected)


def test_a_mask_beside_is_causal_stays():
    def function(q):
        return F.scaled_dot_product_attention(q, q, q, ones(q).tril(1), is_causal=True)

    q = torch.randn(2, 3, ROWS, 8)
    torch.testing.assert_close(oxyfuel.compile(function, fullgraph=True)(q), function(q))


def written(q, x):
    mask = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
    mask[:, 0] = x[0] > 9
    return mask


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", [*MASKS, "written"])
def test_masks(name, dynamic):
    make, stays = MASKS.get(name, (written, True))
    graphs = []

    def function(q, x):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=make(q, x))

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    q, x = torch.randn(2, 3, ROWS, 8), torch.arange(ROWS) - 2.0
    torch.testing.assert_close(oxyfuel.compile(function, dynamic=dynamic, fullgraph=True)(q, x), function(q, x))
    oxyfuel.compile(function, fullgraph=True, backend=backend)(q, x)
    attention = [node for node in graphs[0].graph.nodes if "attention" in str(node.target)]
    assert [node.kwargs.get("attn_mask") is not None for node in attention] == [stays]


@pytest.mark.parametrize("of_mask", [torch.float32, torch.bfloat16, torch.float64])
def test_zeros_of_another_type(of_mask):
    def function(q):
        return F.scaled_dot_product_attention(q, q, q, torch.zeros(ROWS, ROWS, dtype=of_mask))

    def outcome(program, q, autocast):
        try:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                return program(q)
        except RuntimeError as error:
            return str(error).splitlines()[0]

    for of_query in (torch.float32, torch.bfloat16):
        for autocast in (False, True):
            q = torch.randn(2, 3, ROWS, 8, dtype=of_query)
            expected, found = outcome(function, q, autocast), outcome(oxyfuel.compile(function), q, autocast)
            if isinstance(expected, str):
                assert found == expected
            else:
                torch.testing.assert_close(found, expected)


def test_gradients_of_zeros_that_are_added():
    def function(q):
        mask = torch.zeros(ROWS, ROWS, requires_grad=True)
        F.scaled_dot_product_attention(q, q, q, mask).square().sum().backward()
        return mask.grad

    q = torch.randn(2, 3, ROWS, 8)
    torch.testing.assert_close(oxyfuel.compile(function)(q), function(q))


def test_an_expanded_mask_is_needed_for_gradients():
    def function(q, m):
        s = torch.where(m, torch.scalar_tensor(0.0), torch.scalar_tensor(-9.0))
        return ((q * 2).softmax(-1) * s).sum() + (q.sin() * s).sum()

    mask = (torch.arange(64).view(4, 16) % 3 > 0)[:, None, None, :].expand(4, 1, 16, 16)
    mine, theirs = (torch.randn(4, 2, 16, 16, generator=torch.Generator().manual_seed(1), requires_grad=True) for _ in range(2))
    oxyfuel.compile(function, fullgraph=True)(mine, mask).backward()
    function(theirs, mask).backward()
    torch.testing.assert_close(mine.grad, theirs.grad)
    assert oxyfuel.metrics()["calls_eager"] == 0
