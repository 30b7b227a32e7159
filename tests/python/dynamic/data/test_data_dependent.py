"""Sizes and numbers that only data tell stay in the graph, with eager's answers and exceptions."""

import pytest
import torch

import data_programs
import oxyfuel
import seeds
from size_checks import in_threads, same


def outcome(function, arguments):
    """The result, or the type of the exception and its text; and what became of the arguments."""
    arguments = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    torch.manual_seed(7)
    try:
        result = function(*arguments)
    except Exception as error:
        result = (type(error), str(error))
    return result, arguments, torch.rand(1)


def breaks_of(function):
    """The reasons of the graph breaks that `function()` makes."""
    before = len(oxyfuel.metrics()["breaks"])
    function()
    return [record["reason"] for record in oxyfuel.metrics()["breaks"][before:]]


def check(function, calls, whole=True):
    """All calls give eager's outcome, from one graph each."""
    # The elements of small tensors are known until they change.
    compiled = oxyfuel.compile(function, dynamic=True)

    def run():
        for arguments in calls:
            same(outcome(compiled, arguments), outcome(function, arguments))

    breaks = breaks_of(run)
    assert not (whole and breaks), breaks
    return breaks


X = torch.randn(10, 4)


def numbers(*values, dtype=torch.int64):
    return [(X, torch.tensor(v, dtype=dtype)) for v in values]


ITEMS = {
    "a result": lambda x, t: t.item(),
    "int()": lambda x, t: int(t) + 1,
    "in a tuple": lambda x, t: (x + 1, [t.item(), {"n": t.item() * 2}]),
    "arithmetic": lambda x, t: (t.item() * 2 + 1, t.item() // 3, t.item() % 5, -t.item(), max(t.item(), 3)),
    "a size": lambda x, t: torch.zeros(t.item(), 3),
    "a size of ones": lambda x, t: x.new_ones(2, t.item()) + 1,
    "a range": lambda x, t: torch.arange(t.item()) * 2,
    "a slice": lambda x, t: x[: t.item()] * 2,
    "a slice from": lambda x, t: x[t.item() :] * 2,
    "narrow": lambda x, t: x.narrow(0, 0, t.item()) + 1,
    "added to a tensor": lambda x, t: x + t.item(),
    "a number minus a tensor": lambda x, t: t.item() - x,
    "a number by a tensor": lambda x, t: t.item() * x,
    "divided": lambda x, t: x / t.item(),
    "to integers": lambda x, t: (x * 10).int() + t.item(),
    "a fill": lambda x, t: torch.full((3,), t.item()),
    "computed": lambda x, t: x[: (t + 1).sum().item()],
    "of one element": lambda x, t: x[: t.reshape(1, 1).item()],
    "twice": lambda x, t: x[: t.item()].sum() + x[t.item() :].sum(),
    "after a write": lambda x, t: (t.add_(1), x[: t.item()], t.add_(1), t.item())[1:],
    "a write behind": lambda x, t: (x.mul_(2), x[: t.item()] + 1, x.add_(1))[1],
    "a slice that is returned": lambda x, t: x[: t.item()],
    "a view of a slice": lambda x, t: x[: t.item()].t(),
    "two results": lambda x, t: (lambda y: (y, y.t(), y[:, 1:]))(x[: t.item()] * 2),
    "a slice that is written": lambda x, t: x[: t.item()].zero_(),
    "repeated": lambda x, t: x[0].repeat(t.item()),
    "expanded": lambda x, t: x[:1].expand(t.item(), 4) * 2,
    "a random number": lambda x, t: torch.rand(4) + torch.rand(t.item()).sum(),
    "indexed": lambda x, t: x[t.item()] * 2,
    "a matrix product": lambda x, t: x[: t.item()] @ x[: t.item()].t(),
    "a loop over a size": lambda x, t: x.sum(0) + torch.ones(t.item(), 4).sum(0),
    "the shape": lambda x, t: torch.zeros(t.item(), 2).shape,
    "the number of elements": lambda x, t: torch.zeros(t.item(), 2).numel(),
    "an operator's size": lambda x, t: torch.zeros(t.item(), 2).size(0) * x,
    "softmax": lambda x, t: torch.softmax(x[: t.item()], 0),
    "cat": lambda x, t: torch.cat([x[: t.item()], x]),
}


@pytest.mark.parametrize("name", ITEMS)
def test_a_number(name):
    check(ITEMS[name], numbers(3, 4, 5, 1, 0, 7, 10))


@pytest.mark.parametrize("name", ITEMS)
def test_a_number_that_does_not_fit(name):
    check(ITEMS[name], numbers(3, 4, 12, -1, 2), whole=False)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32])
def test_types_of_numbers(dtype):
    check(lambda x, t: (t.item(), x[: t.item()] + 1), numbers(3, 4, 5, 0, dtype=dtype))


def test_results_of_more_than_64_bits():
    check(lambda x, t: (t.item() ** 3 + 1, t.item() ** 2 > 0, x + 1), numbers(3, 4, 2**40, -(2**55), 5))


def test_arithmetic_with_bools_gives_ints():
    def f(x):
        n, is_large = x.sum().int().item(), x.numel() > 2
        return n + True, True - n, n * is_large, 3 & (n + True), n == True, n // True, n / True, max(n, True)  # noqa: E712

    check(f, [(torch.ones(3),), (torch.ones(4),), (torch.zeros(3),)], whole=False)


def test_a_number_of_64_bits():
    check(lambda x, t: t.item(), numbers(3, 4, 2**62, -(2**63), 5), whole=False)


def test_lists_of_numbers():
    def function(x, t):
        a, b = t.tolist()
        return x[a : a + b] * 2, t.view(2, 1).tolist(), x.split([a, b, 10 - a - b])

    check(function, [(X, torch.tensor(v)) for v in ([3, 4], [1, 2], [0, 5], [5, 5])])


def masks(*shares):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(6, 5, generator=generator)
    noise = torch.rand(6, 5, generator=generator)
    return [(x, noise < share) for share in shares]


MASKS = {
    "nonzero": lambda x, m: m.nonzero(),
    "nonzero of floats": lambda x, m: torch.nonzero(x * m),
    "nonzero as a tuple": lambda x, m: torch.nonzero(m, as_tuple=True),
    "where": lambda x, m: torch.where(m),
    "argwhere": lambda x, m: torch.argwhere(m),
    "a mask": lambda x, m: x[m] * 2 + 1,
    "a mask alone": lambda x, m: x[m],
    "a computed mask": lambda x, m: x[(x > 0) & m].sum(),
    "rows": lambda x, m: x[m[:, 0]] + 1,
    "columns": lambda x, m: x[:, m[0]] * 2,
    "rows and columns": lambda x, m: x[m[:, 0]][:, m[0]],
    "masked_select": lambda x, m: torch.masked_select(x, m),
    "masked_select that broadcasts": lambda x, m: torch.masked_select(x, m[:, :1]),
    "the size of what is selected": lambda x, m: (x[m].shape, x[m].size(0) * 2, len(x[m])),
    "a mean over what is selected": lambda x, m: x[m[:, 0]].mean(0),
    "a product": lambda x, m: x[m[:, 0]] @ x.t(),
    "a cumulated sum": lambda x, m: x[m].cumsum(0),
    "sorted": lambda x, m: x[m].sort().values,
    "written": lambda x, m: x.masked_fill_(m, 1.0)[m],
    "a write to a mask": lambda x, m: x.__setitem__(m, 2.0),
    "a write of what is selected": lambda x, m: x.__setitem__(m, x[m] * 2),
    "a write to rows": lambda x, m: x.__setitem__(m[:, 0], 0.0),
    "two masks": lambda x, m: (x[m] + 1, x[~m] + 1),
    "joined": lambda x, m: torch.cat([x[m], x[~m]]),
    "an index of places": lambda x, m: x[m.nonzero()[:, 0]],
    "zeros like it": lambda x, m: torch.zeros_like(x[m]),
    "unique": lambda x, m: torch.unique((x * m * 3).round()),
    "unique with places": lambda x, m: torch.unique((x * m).round(), return_inverse=True, return_counts=True),
    "unique consecutive": lambda x, m: torch.unique_consecutive(m, return_inverse=True, return_counts=True),
    "unique rows": lambda x, m: torch.unique(m, dim=0),
    "unique columns": lambda x, m: torch.unique(m, dim=1, return_counts=True),
    "repeat_interleave": lambda x, m: torch.repeat_interleave(x, m[:, 0].long() * 2, dim=0),
    "repeats": lambda x, m: torch.repeat_interleave(m.sum(1)),
    "a number of true ones": lambda x, m: x[: m[:, 0].sum().item()],
    "one mask after the other": lambda x, m: (lambda y: y[y > 0])(x[m]),
    "a chain": lambda x, m: (lambda y: (y, y.t(), y.sum()))(x[m[:, 0]]),
    "random numbers": lambda x, m: (torch.rand(2), torch.rand_like(x[m]), torch.rand(2)),
    "dropout": lambda x, m: torch.nn.functional.dropout(x[m[:, 0]], 0.5),
    "a linear layer": lambda x, m: torch.nn.functional.linear(x[m[:, 0]], x, x[:, 0]),
    "softmax": lambda x, m: torch.softmax(x[m[:, 0]], -1),
    "layer norm": lambda x, m: torch.nn.functional.layer_norm(x[m[:, 0]], (5,)),
    "scattered": lambda x, m: torch.zeros(6, 5).index_put_(torch.where(m), x[m]),
    "with another index": lambda x, m: x[m[:, 0], 1],
    "with a slice": lambda x, m: x[m[:, 0], 1:3],
    "stacked": lambda x, m: torch.stack([x[m], x[m] * 2], 1),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    check(MASKS[name], masks(0.5, 0.8, 0.0, 1.0, 0.04, 0.3))


def test_a_mask_of_another_shape():
    check(lambda x, m: x[m[:, :2]], masks(0.5, 0.8), whole=False)


def test_sizes_change_too():
    def function(x, m):
        return x[m] * 2, x[m].size(0)

    check(function, [(torch.randn(n), torch.rand(n) < 0.5) for n in (5, 6, 9, 1, 0, 30)])


def test_automatic_sizes():
    compiled = oxyfuel.compile(lambda x, m: x[m] * 2)
    before = oxyfuel.metrics()["graphs"]

    def run():
        for n in (100, 101, 102, 200, 1):
            x = torch.randn(n)
            same(compiled(x, x > 0), x[x > 0] * 2)

    assert not breaks_of(run)
    assert oxyfuel.metrics()["graphs"] == before + 2


def test_a_branch_is_a_break():
    def function(x, t):
        n = t.item()
        y = x[:n] + 1
        if n > 4:
            return y * 2
        return y - 1, n

    # Elements of small tensors of integers are guards (test_elements_that_vary.py).
    counts = [(X, torch.arange(100) < count) for count in (3, 4, 5, 6, 0)]
    breaks = check(lambda x, m: function(x, m.sum()), counts, whole=False)
    assert any("depends on" in reason for reason in breaks), breaks
    compiled = oxyfuel.compile(lambda x, m: function(x, m.sum()), fullgraph=True)
    with pytest.raises(Exception, match=r"depends on u0 of test_data_dependent.py:\d+(.|\n)*torch\._check\("):
        compiled(X, torch.ones(100, dtype=torch.bool))


def test_a_loop_is_a_break():
    def function(x, t):
        for i in range(t.item()):
            x = x + i
        return x

    check(function, numbers(3, 4, 5, 0), whole=False)


def test_an_unread_number_costs_nothing():
    def function(x, t):
        t.item()
        return x + 1

    check(function, numbers(3, 4, 5))


GRADIENTS = {
    "a mask": lambda x, m, w: (x[m] * 2).sin().sum(),
    "rows": lambda x, m, w: (x[m[:, 0]] @ w).tanh(),
    "masked_select": lambda x, m, w: torch.masked_select(x, m) ** 2,
    "an index of places": lambda x, m, w: x[m.nonzero()[:, 0]].exp(),
    "two results": lambda x, m, w: (x[m] * 3, (x[~m] @ x[~m]).sin()),
    "a slice": lambda x, m, w: (x[: m[:, 0].sum().item()] @ w).relu(),
    "a factor": lambda x, m, w: (x * m.sum().item()).cos(),
    "a weighted mean": lambda x, m, w: (x @ w)[m].sum() / max(m.sum().item(), 1),
    "a size of zeros": lambda x, m, w: torch.cat([x, x.new_zeros(m.sum().item(), 5)]) * 2,
    "written": lambda x, m, w: (x * 2).masked_fill(m, 1.0)[m] * w[0, 0],
    "unique": lambda x, m, w: x * torch.unique(m.long()).numel(),
    "softmax": lambda x, m, w: torch.softmax(x[m[:, 0]] @ w, -1),
    "layer norm": lambda x, m, w: torch.nn.functional.layer_norm(x[m[:, 0]], (5,), w[0], w[1]),
    "cross entropy": lambda x, m, w: torch.nn.functional.cross_entropy((x @ w)[m[:, 0]], m.sum(1)[m[:, 0]].clamp(max=4)),
    "repeated": lambda x, m, w: torch.repeat_interleave(x, m[:, 0].long() + 1, dim=0) @ w,
    "dropout": lambda x, m, w: torch.nn.functional.dropout(x[m[:, 0]], 0.5),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.filterwarnings("ignore")
def test_gradients(name):
    function = GRADIENTS[name]
    compiled = oxyfuel.compile(function, dynamic=True)

    def step(function, x, m, w):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        torch.manual_seed(5)
        results = function(x, m, w)
        results = results if isinstance(results, tuple) else (results,)
        sum((r * torch.linspace(1, 2, r.numel()).view(r.shape)).sum() for r in results).backward()
        return [r.detach() for r in results], x.grad, w.grad, torch.rand(1)

    def run():
        for share in (0.5, 0.8, 0.3, 1.0, 0.04, 0.0):
            [(x, m)] = masks(share)
            w = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
            expected, actual = step(function, x, m, w), step(compiled, x, m, w)
            for a, b in zip(actual, expected):
                assert (a is None) == (b is None)
                if a is not None:
                    same(a, b)

    assert not breaks_of(run)


def test_gradients_of_gradients():
    def function(x, m):
        return (x[m] ** 3).sum()

    def twice(function, x, m):
        x = x.clone().requires_grad_()
        [gradient] = torch.autograd.grad(function(x, m), x, create_graph=True)
        return torch.autograd.grad(gradient.sum(), x)[0]

    compiled = oxyfuel.compile(function, dynamic=True)
    for x, m in masks(0.5, 0.8, 0.3):
        same(twice(compiled, x, m), twice(function, x, m))


CHECKS = {
    "_check": lambda x, n: torch._check(n <= 6) or x[:n] * 2,
    "_check of equality": lambda x, n: torch._check(n == 4) or torch.zeros(n) + x.sum(),
    "_check_is_size": lambda x, n: torch._check_is_size(n) or torch.zeros(n),
    "_check with a message": lambda x, n: torch._check(n < 6, lambda: f"not {n}") or x[:n],
    "_check_value": lambda x, n: torch._check_value(n != 5) or x[:n],
    "_check_index": lambda x, n: torch._check_index(n != 5) or x[:n],
    "_check of a product": lambda x, n: torch._check(n * 2 < 12) or x[: n * 2],
    "_check of two numbers": lambda x, n: torch._check(n < x.size(0)) or x[n],
}


# Not in this file, whose assert statements pytest rewrites.
SPACE = {}
exec(
    '''
def with_assert(x, n):
    assert n >= 2, "too few"
    assert not n == 6, f"six of {x.shape}"
    return x[:n] * 2


def with_raise(x, n):
    if n < 2:
        raise ValueError(f"too few: {n}")
    y = x[:n] * 2
    if y.size(0) > 8:
        raise IndexError("too many")
    return y, n > 4, n == 3


def with_handler(x, n):
    try:
        if n < 2:
            raise ValueError("too few")
        return x[:n] * 2
    except ValueError:
        return x * 3
''',
    SPACE,
)
CHECKS["assert"], CHECKS["raise"], CHECKS["a handler"] = SPACE["with_assert"], SPACE["with_raise"], SPACE["with_handler"]


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_checks(name):
    function = CHECKS[name]
    check(lambda x, t: function(x, t.item()), numbers(4, 3, 2, 5, 6, 0, 4, 10, -1), whole=name not in ("_check_is_size", "a handler"))


def test_a_check_decides_a_branch():
    def function(x, t):
        n = t.item()
        torch._check(n > 2)
        return x[:n] + (1 if n > 1 else 2)

    check(function, numbers(3, 4, 5, 1, 8))


def test_a_number_for_kernels_alone_is_not_read():
    def function(x, t):
        return (x * t.sum().item() + 1).relu() - t.sum().item()

    compiled = oxyfuel.compile(function, dynamic=True)
    arguments = [(X, torch.arange(n)) for n in (100, 200, 300)]
    for each in arguments:
        same(compiled(*each), function(*each))
    # One kernel for the sum, and one for what follows: nothing is read in between.
    [segment] = oxyfuel.explain(compiled)(*arguments[0]).segments
    assert segment["extern_calls"] == 0 and segment["kernels"] <= 2


def test_explain_and_the_log(capfd):
    compiled = oxyfuel.compile(lambda x: x[x > 0] * 2)
    [segment] = oxyfuel.explain(compiled)(torch.randn(100)).segments
    [symbol] = segment["symbols"]
    assert symbol["hint"] is None and symbol["range"] == "0 <= u0 <= 100"
    assert "test_data_dependent.py" in symbol["source"]
    assert "u0 = data at test_data_dependent.py" in str(oxyfuel.explain(compiled)(torch.randn(100)))


def test_a_weight_that_is_frozen():
    layer = torch.nn.Linear(5, 3).eval()
    compiled = oxyfuel.compile(lambda x, m: layer(x[m[:, 0]]), dynamic=True)
    with torch.no_grad():
        for x, m in masks(0.5, 0.8, 0.3):
            same(compiled(x, m), layer(x[m[:, 0]]))
        layer.weight.mul_(2)
        for x, m in masks(0.5, 0.8, 0.3):
            same(compiled(x, m), layer(x[m[:, 0]]))


def test_threads():
    compiled = oxyfuel.compile(lambda x: (x[x > 0] * 2, x[x > 1].size(0)))
    compiled(torch.randn(1000))

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(50):
            x = torch.randn(1000, generator=generator)
            values, count = compiled(x)
            assert torch.equal(values, x[x > 0] * 2) and count == (x > 1).sum()

    in_threads(4, work)


@pytest.mark.parametrize("first", range(0, 300, 50))
@pytest.mark.filterwarnings("ignore")
def test_random_programs(first):
    different = seeds.differing(data_programs.difference, first, 50)
    assert not different, f"see one with: tests/fuzz/data_programs.py --seeds N:N+1 --show; {different}"


def test_a_difference_is_found(monkeypatch):
    monkeypatch.setattr(oxyfuel, "compile", lambda f, **options: lambda x, k, t: f(x + 1, k, t))
    assert any(data_programs.difference(seed) for seed in range(5))


def test_backend_eager():
    compiled = oxyfuel.compile(MASKS["two masks"], backend="eager", dynamic=True)
    for arguments in masks(0.5, 0.8, 0.0):
        same(compiled(*arguments), MASKS["two masks"](*arguments))


def test_never():
    compiled = oxyfuel.compile(MASKS["a mask"], dynamic=False)
    for arguments in masks(0.5, 0.8):
        same(compiled(*arguments), MASKS["a mask"](*arguments))


def test_known_elements_of_a_tensor_that_is_empty_later():
    def f(x, k):
        both = torch.cat([x, x])
        return both + x * 0.5, k.sum().item()

    oxyfuel.reset()
    compiled = oxyfuel.compile(f)
    for rows, dtype in ((6, torch.int64), (9, torch.int64), (1, torch.int64), (0, torch.int64), (1, torch.int32)):
        arguments = torch.ones(rows, 5), torch.arange(rows, dtype=dtype)
        if rows > 1:  # 2 * rows against rows
            for function in (f, compiled):
                with pytest.raises(RuntimeError, match="must match the size"):
                    function(*arguments)
            continue
        for actual, expected in zip(compiled(*arguments), f(*arguments), strict=True):
            torch.testing.assert_close(actual, expected)


def test_rows_behind_a_number_from_data():
    def f(x, k):
        count = k.sum().item()
        start = (x[:, 0] > 0).sum().item()
        if count < 0:
            raise ValueError("negative")
        rest = x[start:] + 1
        return x @ rest.t(), torch.softmax(rest, 1)[start:] + 1, torch.softmax(rest, 0)

    oxyfuel.reset()
    compiled = oxyfuel.compile(f)
    for rows in (6, 6, 6, 9, 1, 0):
        arguments = torch.randn(rows, 5), torch.randint(0, 4, (rows,))
        for actual, expected in zip(compiled(*arguments), f(*arguments), strict=True):
            torch.testing.assert_close(actual, expected)


def test_gradients_where_nothing_is_selected():
    def f(x):
        return torch.masked_select(x, x > 1.5).sort().values

    def gradient(function, x):
        x = x.clone().requires_grad_()
        values = function(x)
        return values.detach(), *torch.autograd.grad((values * 2).sum(), x)

    oxyfuel.reset()
    compiled = oxyfuel.compile(f)
    for shift in (0.0, 0.3, -5.0, 1.0):
        x = torch.randn(6, 5) + shift
        for actual, expected in zip(gradient(compiled, x), gradient(f, x), strict=True):
            torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "made",
    [
        lambda n: torch.full([], n) * 1.0,
        lambda n: torch.full((2,), n).sum(),
        lambda n: torch.tensor([1, 2]) + n,
        lambda n: torch.arange(3) * n,
        lambda n: torch.tensor([[1, 2]]).add(n).clamp(max=n),
    ],
)
def test_items_of_tensors_that_a_number_fills(made, dynamic):
    def function(n, x):
        if made(n).sum().item() > 4:
            return x + 1
        return x * made(n).max().item()

    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for n in (2, 1000, 0, 3, 1):
        x = torch.ones(2)
        same(compiled(n, x), function(n, x))


@pytest.mark.parametrize("dynamic", [None, True])
def test_elements_of_what_an_operator_refuses(dynamic):
    """The elements are asked for while the program is recorded. The error is the operator's."""
    programs = [
        lambda x: torch.tensor(x.mul(2).as_strided((40,), (1,)).tolist()),
        lambda x: x.mul(2).as_strided((40,), (1,)).sum().item() + x,
        lambda x: torch.ones(x.add(1).index_select(0, torch.tensor([5])).tolist()),
    ]
    for program in programs:
        oxyfuel.reset()
        errors = []
        for function in (program, oxyfuel.compile(program, dynamic=dynamic)):
            with pytest.raises((RuntimeError, IndexError)) as raised:
                function(torch.ones(1, dtype=torch.int64))
            errors.append((raised.type, str(raised.value)))
        assert errors[0] == errors[1]


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 10])
def test_parts_whose_sizes_data_decide(rows):
    """There may be fewer rows than large parts have together."""

    def function(x, expert):
        counts = (expert[:, None] == torch.arange(3)).sum(0)
        return [part * (i + 1) for i, part in enumerate(x.split(counts.tolist()))]

    check(function, [(torch.randn(rows, 4), torch.randint(0, 3, (rows,))) for _ in range(4)])


def test_parts_that_are_not_the_whole():
    def function(x, counts):
        return [part * 2 for part in x.split((counts + torch.zeros(2, dtype=torch.int64)).tolist())]

    check(function, [(X, torch.tensor(counts)) for counts in ((4, 6), (0, 10), (10, 0), (3, 3), (7, 4))])


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_row_is_repeated_as_often_as_data_say(dynamic):
    def function(x, places):
        return x[:1].expand(places.sum().item(), -1) * 2

    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for count in (3, 4, 1, 0, 7):
        places = torch.zeros(100, dtype=torch.int64)
        places[7] = count
        same(outcome(compiled, (X, places)), outcome(function, (X, places)))
    assert oxyfuel.metrics()["graphs"] == 1 and not oxyfuel.metrics()["breaks"]
