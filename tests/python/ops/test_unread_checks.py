"""Operators that raise on what their tensors hold, whoever reads the results."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

X, INDICES = torch.arange(4.0), torch.tensor([0, 3, 77])


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x.gather(0, i) is None,
        lambda x, i: torch.zeros_like(x.gather(0, i)),
        lambda x, i: torch.ones_like(x.gather(0, i) * 2) + 1,
        lambda x, i: torch.zeros_like(torch.tile(x, (2,)).gather(0, i.narrow(0, 2, 1)))[torch.tensor([0, -1])].sum() is None,
        lambda x, i: (torch.empty_like(x[i]) * 0, x + 1)[1],
        lambda x, i: x.new_zeros(x.index_select(0, i).shape),
        lambda x, i: torch.full_like(torch.nn.functional.embedding(i, x[:, None]), 2.0),
    ],
)
def test_an_index_out_of_range_raises_although_no_element_is_read(function, dynamic):
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for indices in (INDICES, INDICES.clamp(max=3)):
        outcomes = []
        for f in (function, compiled):
            try:
                outcomes.append(f(X, indices))
            except (IndexError, RuntimeError) as error:
                outcomes.append(type(error))
        assert type(outcomes[0]) is type(outcomes[1])
        if isinstance(outcomes[0], torch.Tensor):
            assert torch.equal(*outcomes)
        else:
            assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (torch.fmod(x % y, 3), x + 1)[1],
        lambda x, y: torch.fmod(x % y, 3) is None,
        lambda x, y: (x // y).neg().relu() is None,
        lambda x, y: torch.where((x % y).add(1) > 0, x, y) is None,
        lambda x, y: torch.div(x, y, rounding_mode="trunc").index_fill_(0, y.clamp(0, 1), 2) is None,
    ],
)
def test_a_division_by_zero_raises_although_what_reads_it_is_not_read(function, dynamic):
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for divisors in ([1, 2, 1], [1, 0, 1], [2, 2, 2], [0, 0, 0]):
        outcomes = []
        for f in (function, compiled):
            try:
                outcomes.append(f(torch.arange(3), torch.tensor(divisors)))
            except RuntimeError as error:
                outcomes.append(str(error))
        assert str(outcomes[0]) == str(outcomes[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_product_with_zeros_is_zero_though_parts_of_it_overflow(dtype):
    x = torch.full((16, 64), 2.0, dtype=dtype)
    x[:, ::2] = 0
    compiled = oxyfuel.compile(lambda x: (x.prod(), x.prod(1), x.T.prod(0)))
    assert all((y == 0).all() for y in compiled(x))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("sizes", "weight", "arguments"),
    [
        ((1, 0, 5), (0, 8, 1), {}),
        ((2, 8, 5), (8, 0, 1), {}),
        ((2, 8, 5), (0, 8, 1), {}),
        ((2, 8, 5), (3, 4, 1), {"groups": 2}),
        ((2, 8, 5), (8, 8, 0), {}),
        ((2, 8, 0), (8, 8, 1), {"padding": 1}),
        ((2, 8, 5), (8, 8, 3), {"padding": 9}),
    ],
)
def test_a_convolution_that_eager_refuses_is_refused_although_it_is_not_read(sizes, weight, arguments, transposed, dynamic):
    convolve = torch.nn.functional.conv_transpose1d if transposed else torch.nn.functional.conv1d

    def function(x, weight):
        convolve(x, weight, **arguments) / 8
        return x + 1

    inputs, outcomes = (torch.randn(sizes), torch.randn(weight)), []
    for f in (function, oxyfuel.compile(function, dynamic=dynamic)):
        try:
            outcomes.append(f(*inputs))
        except RuntimeError as error:
            outcomes.append(str(error).splitlines()[0])
    assert type(outcomes[0]) is type(outcomes[1])
    if isinstance(outcomes[0], str):
        assert outcomes[0] == outcomes[1]
    else:
        assert torch.equal(*outcomes)


def written_over(y):
    y[...] = 1
    return y


READERS = [
    lambda y: y, lambda y: (y * 2).sum(), lambda y: y.new_full((2,), 1.5), torch.zeros_like,
    lambda y: y.sigmoid().fill_(2), lambda y: F.hardswish(y).sigmoid().zero_(), lambda y: written_over(F.hardswish(y)),
    lambda y: (y * 2).view(-1).fill_(3),
]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("made", [lambda x: x, lambda x: x.swapaxes(0, -1), lambda x: x * 2])
@pytest.mark.parametrize("sizes", [(4,), (3, 2), (5, 1, 0)])
def test_as_strided_that_leaves_the_memory_raises_although_it_is_not_read(sizes, made, read, dynamic):
    def function(x, count):
        made_of_it = read(made(x).as_strided((count, 2), (2, 1)))
        return (x + 1, torch.zeros_like(made_of_it))

    compiled, x = oxyfuel.compile(function, dynamic=dynamic), torch.randn(sizes)
    for count in (0, 2, 3, 4, 2):
        outcomes = []
        for f in (function, compiled):
            try:
                outcomes.append(f(x, count))
            except RuntimeError as error:
                outcomes.append(str(error).splitlines()[0])
        assert type(outcomes[0]) is type(outcomes[1])
        assert outcomes[0] == outcomes[1] if isinstance(outcomes[0], str) else all(map(torch.equal, *outcomes))


def test_isin_raises_for_some_sizes_although_it_is_not_read():
    def function(x):
        torch.isin(x.expand(x.size(0), x.size(0)), x.expand(x.size(0), x.size(0)))

    compiled = oxyfuel.compile(function)
    for size in (16, 3, 5, 16):
        outcomes = []
        for f in (function, compiled):
            try:
                outcomes.append(f(torch.arange(float(size))[:, None]))
            except RuntimeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


WINDOWS = {
    "avg_pool3d": lambda x: torch.nn.functional.avg_pool3d(x[None], (3, 1, 2)),
    "local_response_norm": lambda x: torch.nn.functional.local_response_norm(x, 3),
    "max_pool3d": lambda x: torch.nn.functional.max_pool3d(x[None], (3, 1, 2)),
    "avg_pool2d": lambda x: torch.nn.functional.avg_pool2d(x, 3),
    "conv2d": lambda x: torch.nn.functional.conv2d(x, torch.ones(2, 4, 3, 3, dtype=x.dtype)),
    "unfold": lambda x: torch.nn.functional.unfold(x, 3),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.bool])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_over_types_that_eager_refuses_raise_although_they_are_not_read(name, dtype, dynamic):
    """One element is too few for a window: its kernel says so before it looks at the type."""

    def function(x):
        WINDOWS[name](x)
        return x.logical_not()

    x, outcomes = torch.ones(3, 4, 5, 6).to(dtype), []
    for f in (function, oxyfuel.compile(function, dynamic=dynamic)):
        try:
            outcomes.append(f(x))
        except RuntimeError as error:
            outcomes.append(str(error).splitlines()[0])
    assert type(outcomes[0]) is type(outcomes[1])
    assert torch.equal(*outcomes) if isinstance(outcomes[0], torch.Tensor) else outcomes[0] == outcomes[1]


def test_views_that_are_written_or_read_are_not_called_unread():
    def written(x):
        y = x * 2
        y[2:6].as_strided((8,), (1,), 0).fill_(1.0)
        return y

    def read(x, n):
        y = torch.empty(n + 2)
        y.zero_()
        y[1:-1] = x
        return y.as_strided((n, 3), (1, 1), 0)

    x = torch.randn(8)
    assert torch.equal(oxyfuel.compile(written, fullgraph=True)(x), written(x))
    compiled = oxyfuel.compile(read, dynamic=True)
    for n in (5, 7, 9, 12):
        x = torch.randn(n)
        assert torch.equal(compiled(x, n), read(x, n))
    assert oxyfuel.metrics()["calls_eager"] == 0


@pytest.mark.parametrize("reads", [False, True])
def test_a_frozen_weight_that_an_operator_refuses(reads):
    """Before a call nothing is computed that raises: the call is to."""

    class Quotients(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.divisors = torch.nn.Parameter(torch.tensor([2, 0, 3]), requires_grad=False)

        def forward(self, x):
            quotients = self.divisors // (self.divisors - self.divisors)
            return x + quotients if reads else x + 1

    model = Quotients().eval()
    compiled = oxyfuel.compile(model, options={"freezing": True})
    with torch.no_grad():
        for function in (model, compiled, compiled):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                function(torch.ones(3))
