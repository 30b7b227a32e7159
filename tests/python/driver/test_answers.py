"""Answers that were once wrong, by class; found by tests/fuzz."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map

import oxyfuel
from eager_comparison import outcome, program


@program(whole=True)
def test_views_of_arguments_are_new_tensors(compile):
    views = (
        lambda x: x.view(5), lambda x: x.reshape(5), lambda x: x.detach(), lambda x: x[...], lambda x: x.view_as(x),
        lambda x: x.expand(5), lambda x: x.transpose(0, 0), lambda x: x.split(5)[0], lambda x: x.permute(0),
    )
    x = torch.arange(5.0)
    results = [compile(view)(x) for view in views]
    return x, results, [result is x for result in results], compile(lambda x: x)(x) is x


@program(whole=True)
def test_views_of_another_type(compile):
    x, z = torch.arange(12.0).reshape(6, 2), torch.arange(4.0).to(torch.complex64)
    return (
        x, compile(torch.view_as_complex)(x), compile(lambda x: x.view(torch.int32))(x), compile(lambda x: x[2:].view(torch.int16))(x),
        compile(lambda x: x.view(torch.float64)[1:])(x), z, compile(torch.view_as_real)(z), compile(lambda z: z.imag)(z),
    )


@program()
def test_views_of_written_arguments(compile):
    base = torch.arange(9.0)

    def f(x, y):
        x += 1
        y.t().mul_(2)
        return x.ravel(), x[1:], y[:, 1:]

    x, y = base[1:2:2], base[2:8].view(2, 3).t()
    return compile(f)(x, y), base


@program(whole=True)
def test_operators_that_hide_their_views(compile):
    x = torch.arange(12.0).view(3, 4)
    return x, compile(lambda x: x.unsafe_chunk(2, 1))(x), compile(lambda x: (x + 1).unsafe_split(2, 1))(x), compile(
        lambda x: (x * 2).unsafe_split_with_sizes([1, 3], 1))(x)


@program(whole=True)
def test_one_element_a_loop_is_read_before_it_is_stored(compile):
    def f(x):
        y = torch.atan2(x.to(torch.bfloat16), x.abs() + 0.5)
        y.transpose(0, 1)[0].add_(1)
        return y

    def g(x, n):
        y = x.exp().log1p()
        n[0] = y[0] * 3
        return y * 2, n

    return compile(f)(torch.full((1, 1), 0.25)), compile(g)(torch.ones(1), torch.arange(3))


INDEXING = {
    "embedding": lambda t, i: F.embedding(i, t),
    "index": lambda t, i: t[i],
    "index_select": lambda t, i: t.index_select(0, i),
    "gather": lambda t, i: t.gather(0, i[:, None].expand(-1, 3)),
    "index_add": lambda t, i: t.index_add(0, i, t[:1].expand(len(i), -1)),
    "index_put": lambda t, i: t.index_put((i,), t[0]),
    "scatter": lambda t, i: t.scatter(0, i[:, None], 1.0),
    "take": lambda t, i: t.take(i * 3),
}


@pytest.mark.parametrize("name", INDEXING)
@pytest.mark.parametrize("use", ["nothing", "one row", "everything", "a reduction of a row"])
def test_indices_out_of_range_raise_whatever_is_read(name, use):
    def f(t, i, before, after):
        before += 1
        x = INDEXING[name](t, i)
        after += 1
        return {"nothing": lambda: t * 2, "one row": lambda: x[:1] + 1, "everything": lambda: x * 2, "a reduction of a row": lambda: x.relu()[0].sum()}[use]()

    compiled = oxyfuel.compile(f)
    t = torch.randn(4, 3)
    for i in ([0, 1, 2], [1, 2, 4], [0, 3, 3], [2, 2, 9]):
        runs = []
        for function in (f, compiled):
            counters = torch.zeros(()), torch.zeros(())
            with torch.no_grad():
                runs.append((outcome(function, t, torch.tensor(i), *counters), counters))
        (expected, marks), (actual, marks_too) = runs
        assert expected[0] == actual[0] and marks == marks_too
        if expected[0] == "raised":
            assert expected[1:4] == actual[1:4]
        else:
            torch.testing.assert_close(actual[1], expected[1])
    assert oxyfuel.metrics()["calls_compiled"] >= 2


@pytest.mark.parametrize("divide", [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a.fmod(b), lambda a, b: a.div(b, rounding_mode="trunc")])
def test_integer_division_by_zero_raises_though_nobody_reads_it(divide):
    def f(a, b):
        divide(a, b)
        return a + 1

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        oxyfuel.compile(f)(torch.arange(3), torch.tensor([1, 0, 2]))


def test_indices_into_nothing():
    def f(mask, t, i):
        return t[mask].gather(0, i)

    compiled = oxyfuel.compile(f)
    assert compiled(torch.tensor([True, False]), torch.ones(2), torch.tensor([0])).tolist() == [1]
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled(torch.tensor([False, False]), torch.ones(2), torch.tensor([0]))


REFUSED = {
    "a type": lambda: torch.ones(3).bitwise_xor(2),
    "a type in place": lambda: torch.ones(3).bool().mul_(2),
    "two types": lambda: torch.heaviside(torch.ones(3), torch.ones(3).double()),
    "lerp of integers": lambda: torch.arange(3).lerp(torch.arange(3), 0.5),
    "an out of another type": lambda: torch.gather(torch.ones(2, 2), 1, torch.zeros(2, 2).long(), out=torch.ones(2, 2).double()),
    "values of another type": lambda: torch.ones(3).index_put((torch.tensor([0]),), torch.ones(1).double()),
    "a source of another type": lambda: torch.ones(3).scatter(0, torch.tensor([0]), torch.ones(1).double()),
    "indices of another rank": lambda: torch.ones(3, 2).scatter_add(0, torch.tensor([0]), torch.ones(1)),
    "bounds": lambda: torch.arange(2.5, 1.0, 3.0) + torch.arange(1, 0, 5),
    "padding": lambda: F.avg_pool1d(torch.ones(1, 1, 9), 2, padding=-1),
    "a divisor": lambda: F.avg_pool2d(torch.ones(1, 1, 9, 9), 2, divisor_override=0),
    "a name": lambda: F.gelu(torch.ones(3), approximate="asdf"),
    "a delta": lambda: F.huber_loss(torch.ones(3), torch.zeros(3), delta=0),
    "a threshold": lambda: F.softshrink(torch.ones(3), -0.5),
    "a weight": lambda: torch.native_layer_norm(torch.ones(1, 2, 3), (1, 2, 3), torch.ones(1, 2), None, 1e-5),
    "a shift": lambda: torch.ones(()).roll(1, 0),
    "no shift": lambda: torch.ones(3).roll(()),
    "an overlap": lambda: (lambda x: x[1:].add_(x[:-1]))(torch.ones(4)),
    "a transposed overlap": lambda: (lambda x: x.copy_(x.t()))(torch.rand(4, 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses(name):
    expected = outcome(REFUSED[name])
    assert expected[0] == "raised"
    assert outcome(oxyfuel.compile(REFUSED[name]))[:3] == expected[:3]


@program(whole=True)
def test_strides_of_results(compile):
    x = torch.randn(4, 1).t()
    functions = (
        lambda x: (x * 2)[-1].expand(2, 4), lambda x: x.clone()[-1].expand(2, 4), lambda x: (x * 2)[:, ::2], lambda x: (x + 1).expand(3, -1, -1)[:, :, 1:],
        lambda x: torch.ones(0, 3).expand(2, 0, 3) + 1, lambda x: x.select(0, 0).diag_embed()[:2, 1:3],
    )
    return [compile(f)(x) for f in functions]


@program(whole=True)
def test_strides_of_parts_of_what_is_an_argument_unchanged(compile):
    views = (lambda y: y[:, 1:3], lambda y: y[::2], lambda y: y.diagonal(), lambda y: y[1:, 2], lambda y: y.t()[1:4], lambda y: y.view(2, 12)[:, 3:5])
    same = (lambda x: x * 1, lambda x: x + 0, lambda x: x.double().to(x.dtype), lambda x: x.clone())
    x, results = torch.arange(24.0, dtype=torch.float64).view(4, 6), []
    for of in views:
        for keep in same:
            y = compile(lambda x: of(keep(x)))(x)
            results.append((y, y.stride(), y.storage_offset()))
    y, z = compile(lambda x: ((x * 1)[:, 1:3], (x * 1)[:2]))(x)
    return results, y.stride(), z.stride()


@program(whole=True)
def test_copies_of_storages_begin_where_their_argument_does(compile):
    x, row, rows = torch.arange(24.0).view(8, 3)[2:], torch.ones(3), torch.ones(2, 3)
    functions = (
        lambda x: torch.slice_scatter(x, rows, 0, 1, 3), lambda x: torch.select_scatter(x, row, 0, 1),
        lambda x: torch.as_strided_scatter(x, rows, (2, 3), (3, 1), 9), lambda x: torch.diagonal_scatter(x, row),
        lambda x: torch.slice_scatter(x[1:] * 2, rows, 0, 1, 3), lambda x: torch.select_scatter(x.t(), torch.ones(6), 0, 1),
    )
    results = [compile(f)(x) for f in functions]
    return [(y, y.stride(), y.storage_offset(), y[1:].storage_offset()) for y in results]


@program(whole=True)
def test_rows_without_elements(compile):
    """A kernel may read what the elements of a row share before it finds that there are none."""
    def write_transposed(x):
        y = torch.floor_divide(x, x)
        y.view(0, 64).mT.add_(1)
        return y

    return compile(write_transposed)(torch.zeros(64, 0, dtype=torch.float64))


@program()
def test_repeated_rows_without_elements(compile):
    """The memory of what is repeated is there although no element is."""
    functions = (
        lambda a, b: a.sigmoid() + b, lambda a, b: a.sum(-1) + b.sum(-1), lambda a, b: (a + b).sum(0), lambda a, b: (a * b).softmax(-1),
        lambda a, b: (a - b.mean(-1, keepdim=True)) * a.exp(), lambda a, b: (a.transpose(0, 1).contiguous() + 1, b.mT + 1),
        lambda a, b: torch.cat([a, b], -1), lambda a, b: a.cumsum(-1) * 2 + b,
    )
    results = []
    for function in functions:
        for dynamic in (True, None):
            compiled = compile(function, dynamic=dynamic)
            for rows, columns, length in ((3, 5, 7), (4, 6, 9), (3, 5, 0), (0, 5, 7), (3, 0, 7), (64, 64, 0), (0, 0, 0)):
                a = torch.ones(rows, columns, 1).expand(rows, columns, length)
                b = torch.full((rows, 1, length), 2.0).expand(rows, columns, length)
                results += [compiled(x, y) for x in (a, b) for y in (a, b)]
    # Strides of dimensions without elements may be others than eager's.
    return tree_map(lambda result: result.clone(memory_format=torch.contiguous_format), results)


@program(whole=True)
def test_empty_tensors(compile):
    empty = torch.zeros(0, 3)
    return [compile(f)(empty) for f in (lambda x: x.repeat(2, 2), lambda x: x.tile(2), lambda x: x.roll(1, 0), lambda x: x.sum(0), lambda x: x.t() @ x, lambda x: torch.cat([x, x]))]


@program(whole=True)
def test_negative_constants(compile):
    return compile(lambda x: F.hardshrink(x, -0.5))(torch.linspace(-1, 1, 9)), compile(lambda x: -(x * 0 - 2))(torch.ones(3))


@program()
def test_views_that_do_not_overlap_may_be_copied(compile):
    def f(x):
        x[:, 0] = x[:, 1]
        x[2:].copy_(x[:2])
        x[:, 1::2].add_(x[:, ::2])
        return x * 1

    return compile(f)(torch.arange(16.0).view(4, 4))


ZEROS_OF_ONE_SIGN = {
    "neg": lambda x: -x,
    "relu": lambda x: torch.relu(-x),
    "clamp_min": lambda x: (-x).clamp(min=0.0),
    "clamp": lambda x: (-x).clamp(-1, 1),
    "clamp at zero": lambda x: x.clamp(-1, -0.0),
    "max": lambda x: (-x).max(),
    "amax": lambda x: (-x).reshape(1, -1).amax(1),
    "column maximum": lambda x: (-x).reshape(-1, 1).expand(-1, 5).contiguous().amax(0),
    "min": lambda x: (-x).min(),
    "max of positive": lambda x: x.max(),
    "sum": lambda x: (-x).sum(),
    "prod": lambda x: (-x).prod(),
    "abs": lambda x: (-x).abs(),
    "cumsum": lambda x: (-x).cumsum(0),
}


@pytest.mark.parametrize("size", [1, 3, 16, 19, 1000])
@pytest.mark.parametrize("name", ZEROS_OF_ONE_SIGN)
def test_signs_of_zeros(name, size):
    x = torch.zeros(size)
    expected, actual = ZEROS_OF_ONE_SIGN[name](x), oxyfuel.compile(ZEROS_OF_ONE_SIGN[name])(x)
    assert torch.equal(torch.signbit(expected), torch.signbit(actual)), (expected, actual)


def test_the_sign_of_what_shrinks_to_nothing():
    for x in (torch.full((64,), -0.0), torch.full((64,), -0.25), torch.full((64,), float("nan"))):
        expected, actual = F.softshrink(x), oxyfuel.compile(lambda x: F.softshrink(x))(x)
        assert torch.equal(expected.isnan(), actual.isnan()) and torch.equal(expected.signbit(), actual.signbit())


@program()
def test_turning_a_number_around(compile):
    f = compile(lambda x, dim: x.flip(dim))
    return [outcome(f, torch.tensor(2.0), dim) for dim in (0, -1, 1, 3)], [outcome(f, torch.ones(2, 3), dim) for dim in (1, 2, -3)]


@program()
def test_limits_of_short_types(compile):
    x = torch.tensor([float("inf"), -float("inf"), float("nan"), 1.0])
    f, g = compile(lambda x: x.nan_to_num()), compile(lambda x: x.nan_to_num(posinf=3.0))
    return [(f(x.to(dtype)), g(x.to(dtype))) for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)]


@program()
def test_hypotenuses_at_the_limits(compile):
    numbers = torch.tensor([0.0, -0.0, 1.0, float("inf"), -float("inf"), float("nan"), 1e30])
    return compile(torch.hypot)(numbers[:, None], numbers[None])


@program()
def test_probabilities_out_of_range(compile):
    f = compile(lambda x: torch.nn.functional.binary_cross_entropy(x, torch.ones(2)))
    return [outcome(f, torch.tensor(x)) for x in ([0.25, 0.5], [2.0, -1.0], [0.0, 1.0])]


@program()
def test_masks_of_tensors_in_another_order(compile):
    x = torch.ones(4, 3)
    f, g = compile(lambda x: F.dropout(x, 0.5)), compile(lambda x: torch.empty_like(x).bernoulli_(0.3))
    return f(x), f(x.t()), g(x), g(x.t()), f(torch.ones(2, 3, 4).permute(2, 0, 1)), torch.rand(2)


DRAWS = {
    "normal_": lambda x: x.normal_(1, 2),
    "out=": lambda x: torch.normal(0.0, torch.ones(x.shape), out=x),
    "out= of means": lambda x: torch.normal(torch.ones(x.shape), 2.0, out=x),
    "bernoulli_": lambda x: x.bernoulli_(0.3),
    "uniform_": lambda x: x.uniform_(),
    "exponential_": lambda x: x.exponential_(),
}
PARTS = {
    "whole": lambda x: x,
    "rows": lambda x: x[::2],
    "columns": lambda x: x[:, 4:8],
    "column": lambda x: x[:, 1],
    "row": lambda x: x[3],
    "diagonal": lambda x: x.diagonal(),
    "transposed": lambda x: x.t(),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@program()
def test_draws_into_parts(compile, draw, part):
    """Eager draws otherwise into what is not contiguous, and leaves the generator in another state."""

    @compile
    def f(x):
        y = torch.zeros(20, 24)
        draw(part(x)), draw(part(y))
        return y, torch.rand(2)

    x = torch.zeros(24, 20)
    return f(x), x, torch.rand(2)


@program()
def test_strides_of_draws(compile):
    f, g = compile(lambda x: torch._standard_gamma(x)), compile(lambda x: torch.distributions.Gamma(x, x).rsample())
    x = torch.ones(4, 3)
    return f(x), f(x.t()), f(x[:, ::2]), g(x.t()), torch.rand(2)


@program()
def test_pixels_of_nothing(compile):
    # With symbols, strides of tensors without elements may be others.
    f = compile(lambda x: (F.pixel_unshuffle(x, 2), F.pixel_shuffle(x, 2)), dynamic=False)
    shapes = ((0, 4, 4, 6), (2, 0, 4, 4), (0, 2, 4, 4, 6), (1, 4, 0, 2))
    return [f(torch.zeros(shape)) for shape in shapes], f(torch.zeros(0, 4, 4, 6).contiguous(memory_format=torch.channels_last))


NUMBERS_IN_HALF_PRECISION = {
    "add": lambda x, y: (x + 0.1, 0.7 + x, x.clone().add_(-0.1), torch.tensor(0.1) + x, x + torch.tensor(0.1, dtype=torch.float64)),
    "sub": lambda x, y: (x - 0.1, 0.3 - x, torch.rsub(x, 0.7), torch.tensor(0.1) - x),
    "mul": lambda x, y: (x * 0.1, 0.1 * x, x * torch.tensor(0.1), torch.tensor(0.1) * x),
    "div": lambda x, y: (x / 0.7, x / torch.tensor(0.7), torch.tensor(0.7) / x),
    "rounded quotients": lambda x, y: (x // 0.7, 0.3 // x, torch.div(x, 0.3, rounding_mode="trunc"), x // torch.tensor(0.1)),
    "remainders": lambda x, y: (x % 0.7, 0.7 % x, torch.fmod(x, 0.3), torch.tensor(0.1) % x),
    "powers": lambda x, y: (x.abs() ** 0.7, 0.3**x),
    "roots": lambda x, y: (x**0.5, x**-0.5, x**-1, x**2, x**3, x**4, x**-2),
    "comparisons": lambda x, y: (x < 0.1, x <= 0.7, x > 0.3, x >= 0.1, x == 0.7, x != 0.3, x <= 2**31, x == 1e10, x > torch.tensor(0.1)),
    "xlogy": lambda x, y: (torch.xlogy(x, 0.3), torch.xlogy(0.3, x.abs()), torch.xlogy(x, y.abs())),
    "thresholds": lambda x, y: (F.hardshrink(x, 0.3), F.softshrink(x, 0.3), F.threshold(x, 0.1, 0.3), F.hardtanh(x, -0.1, 0.7), x.clamp(0.1, 0.7)),
    "slopes": lambda x, y: (F.leaky_relu(x, 0.1), F.elu(x, 0.3), F.celu(x, 0.3), torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=0.3)),
    "choices": lambda x, y: (torch.where(x > 0, x, 0.1).float() * 3, x.masked_fill(y > 0, 0.1).float() * 3),
    "fills": lambda x, y: (F.pad(x, (1, 1), value=0.1).float() * 3, x.nan_to_num(0.1, 0.3, 0.7).float() * 3, F.threshold(x, 0.1, 0.3).float() * 3),
    "ranges": lambda x, y: (torch.linspace(0.1, 0.7, 9, dtype=x.dtype).float() * 3, torch.linspace(-3, 9, 3001, dtype=x.dtype), torch.linspace(0.3, 0.7, 1, dtype=x.dtype), torch.arange(0.1, 0.7, 0.1, dtype=x.dtype).float() * 3),
    "integers": lambda x, y: (x + 2049, x.float().long() + x, x * torch.arange(2049, 2049 + len(x)), x - torch.tensor(2049)),
    "others": lambda x, y: (torch.atan2(x, torch.tensor(0.1)), torch.hypot(x, torch.tensor(0.7)), torch.maximum(x, torch.tensor(0.1))),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("f", NUMBERS_IN_HALF_PRECISION.values(), ids=NUMBERS_IN_HALF_PRECISION)
def test_numbers_in_half_precision(f, dtype):
    """Eager's kernels convert some numbers to the type of the tensor, and read others as they are."""
    limits = [0.1, -0.1, 0.3, 0.7, -0.7, 1.0, 2.0, 100.0, 0.0, -0.0, float("inf"), -float("inf"), float("nan"), 65504.0]
    x = torch.cat([torch.linspace(-3, 3, 242), torch.tensor(limits)]).to(dtype)
    y = torch.linspace(2, -1, len(x)).to(dtype)
    for number, (expected, actual) in enumerate(zip(f(x, y), oxyfuel.compile(f)(x, y), strict=True)):
        assert expected.dtype == actual.dtype
        differ = (expected != actual) & ~(expected.isnan() & actual.isnan())
        assert not differ.any(), (number, x[differ], expected[differ], actual[differ])
        zeros = (expected == 0) & (actual == 0)
        assert torch.equal(expected.signbit()[zeros], actual.signbit()[zeros]), number


@pytest.mark.parametrize("f", [F.relu6, F.hardtanh, F.hardswish, F.hardsigmoid, F.softshrink, F.hardshrink, F.relu, F.elu], ids=lambda f: f.__name__)
@program(grad=True)
def test_gradients_at_nan(compile, f):
    """As the vectorised kernels have them."""
    x = torch.full((64,), float("nan"), requires_grad=True)
    y = compile(lambda x: f(x))(x)
    y.sum().backward()
    return y, x.grad


@program()
def test_the_precision_of_products_is_guarded(compile):
    f = compile(lambda x: (x + 1, torch.get_float32_matmul_precision()))
    before = torch.get_float32_matmul_precision()
    try:
        answers = []
        for precision in ("highest", "high", "medium", "highest"):
            torch.set_float32_matmul_precision(precision)
            answers.append(f(torch.ones(1)))
        return answers
    finally:
        torch.set_float32_matmul_precision(before)


@program()
def test_memory_is_filled_under_deterministic_algorithms(compile):
    @compile
    def f(x):
        kinds = [torch.empty(2, dtype=kind) for kind in (torch.float32, torch.int32, torch.uint8, torch.int64, torch.bool, torch.float64)]
        return x + 1, kinds, x.new_empty(3), torch.empty_like(x), torch.empty_strided((2, 2), (1, 2))

    torch.use_deterministic_algorithms(True)
    try:
        return f(torch.ones(2)), f(torch.ones(2))
    finally:
        torch.use_deterministic_algorithms(False)


def test_calls_work_whatever_way_the_precision_was_set():
    products = torch.backends.mkldnn.matmul
    before = products.fp32_precision
    f = oxyfuel.compile(lambda x: x @ x + 1)
    x = torch.randn(4, 4)
    try:
        assert torch.equal(f(x), x @ x + 1)
        products.fp32_precision = "bf16"
        assert torch.equal(f(x), x @ x + 1)
        assert "precision" in str(oxyfuel.metrics()["recompile_reasons"])
    finally:
        products.fp32_precision = before


@program(whole=True)
def test_truth_over_no_dimension(compile):
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    f = compile(lambda x: (torch.any(x, dim=()), torch.all(x, dim=()), torch.any(x, dim=(), keepdim=True), x.all(dim=(0, 1)), x.any(dim=[1])))
    return f(x), f(x.int())


@program()
def test_strides_over_memory_of_another_type(compile):
    f = compile(lambda x: (x.view(torch.int32).as_strided((2,), (1,)), x.view(torch.int16)[2:].as_strided((3,), (2,), 1)))
    g = compile(lambda x: x.add_(1).view(torch.int16).as_strided((2,), (1,)))
    return f(torch.arange(4.0)), g(torch.arange(4.0))


LIMITS = (0.0, -0.5, 1.9, -1.9, 127.5, -129.0, 255.0, 300.0, -1.0, 65535.0, 2.0**31, -(2.0**31), 2.0**31 - 128, -(2.0**31) - 256, 3e9, 2.0**32,
          2.0**63, -(2.0**63), 2.0**62, 1e19, -1e19, 1e30, float("inf"), -float("inf"), float("nan"))


@pytest.mark.parametrize("of", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("to", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
@program(backends=("native",))
def test_numbers_that_an_integer_cannot_hold(compile, of, to):
    x = torch.tensor(LIMITS, dtype=torch.float64).to(of)
    read = compile(lambda x: ((x * 1).to(to), (x[:1] * 1).to(to), x.max().to(to)))
    known = compile(lambda: [torch.full((2,), value, dtype=torch.float64).to(of).to(to) for value in LIMITS])
    nothing = compile(lambda x: (x[:0].mean().to(to), (x * float("nan")).to(to), (x[:0].sum() - 1e30).to(to)))
    return read(x), known(), nothing(x)


@program(grad=True)
def test_one_of_several_views_is_not_written(compile):
    def write(x, views, i):
        y = x * 1
        parts = views(y)
        parts[i].add_(1)
        return y.sum(), parts[i].clone()

    def give(x, views):
        y = x * 1
        return y, *views(y)

    kinds = (lambda y: y.split(1), lambda y: y.unbind(0), lambda y: y.chunk(2), lambda y: (y[0], y[1]), lambda y: [a.view(-1) for a in y.split(1)])
    x, leaf = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    answers = []
    for views in kinds:
        answers += [outcome(compile(write), x, views, i)[:2] for i in (0, 1)]
        given = compile(give)(x, views)
        answers.append(outcome(given[1].add_, 1)[:2])
        answers.append(outcome(compile(lambda x: views(x))(leaf * 1)[0].mul_, 2)[:2])
    return answers


@program(grad=True)
def test_leaves_that_are_made_in_the_region(compile):
    f = compile(lambda x: torch.eye(2, requires_grad=True) + x)
    g = compile(lambda x: (torch.ones(2, requires_grad=True), x + 1))
    leaf, _ = g(torch.ones(2))
    (leaf * 3).sum().backward()
    return f(torch.ones(2)).requires_grad, leaf.is_leaf, leaf.requires_grad, leaf.grad, compile(lambda: torch.eye(2, requires_grad=True).t())().is_leaf
