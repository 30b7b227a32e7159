"""Numbers that vary as arguments of torch's functions: one graph serves all of them, and the answers are eager's, with
gradients, at borders and for values that are not finite."""

import math

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

NUMBERS = (0.25, 0.5, 0.3, 1.5, 2.0, 0.125)
FLOATING = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
WIDE = (torch.float32, torch.float64)

# (name, function of a tensor and a number, types)
FUNCTIONS = [
    ("product", lambda x, s: x * s, FLOATING),
    ("quotient", lambda x, s: x / s, FLOATING),
    ("quotient of the number", lambda x, s: s / (x.abs() + 1), FLOATING),
    ("sum", lambda x, s: s + x, FLOATING),
    ("difference", lambda x, s: s - x, FLOATING),
    ("remainder", lambda x, s: x % s, FLOATING),
    ("power", lambda x, s: (x.abs() + 0.5) ** s, FLOATING),
    ("power of the number", lambda x, s: s ** x.clamp(-2, 2), FLOATING),
    ("torch.pow", lambda x, s: torch.pow(x.abs() + 0.5, s), FLOATING),
    ("float_power", lambda x, s: torch.float_power(x.abs() + 0.5, s), WIDE),
    ("without dimensions", lambda x, s: x.nan_to_num(0, 1, 1).sum() * s, WIDE),
    ("subtract", lambda x, s: torch.subtract(x, s), FLOATING),
    ("multiply", lambda x, s: x.multiply(s), FLOATING),
    ("divide", lambda x, s: torch.divide(x, s), FLOATING),
    ("rsub", lambda x, s: torch.rsub(x, s, alpha=2), WIDE),
    ("add, alpha", lambda x, s: torch.add(x, x * 2, alpha=s), WIDE),
    ("addcmul", lambda x, s: torch.addcmul(x, x, x, value=s), WIDE),
    ("lerp", lambda x, s: torch.lerp(x, x * 2, s), FLOATING),
    ("leaky_relu", lambda x, s: F.leaky_relu(x, s), FLOATING),
    ("leaky_relu in place", lambda x, s: F.leaky_relu(x * 1, s, inplace=True), FLOATING),
    ("LeakyReLU", lambda x, s: torch.nn.LeakyReLU(s)(x), FLOATING),
    ("elu", lambda x, s: F.elu(x, s), FLOATING),
    ("celu", lambda x, s: F.celu(x, s), FLOATING),
    ("hardtanh", lambda x, s: F.hardtanh(x, -s, s), FLOATING),
    ("threshold", lambda x, s: F.threshold(x, s, 0.5 * s), FLOATING),
    ("softplus", lambda x, s: F.softplus(x, s, 1.5), FLOATING),
    ("hardshrink", lambda x, s: F.hardshrink(x, s), FLOATING),
    ("softshrink", lambda x, s: F.softshrink(x, s), FLOATING),
    ("huber_loss", lambda x, s: F.huber_loss(x, x.detach() * 0.5, delta=s, reduction="none"), WIDE),
    ("smooth_l1_loss", lambda x, s: F.smooth_l1_loss(x, x.detach() * 0.5, beta=s, reduction="none"), WIDE),
    ("normalize", lambda x, s: F.normalize(x.nan_to_num(0, 1, 1), eps=s, dim=-1), WIDE),
    ("pad", lambda x, s: F.pad(x, (1, 2), value=s), FLOATING),
    ("pad by name", lambda x, s: F.pad(input=x, pad=(1, 2), value=s), FLOATING),
    ("leaky_relu_", lambda x, s: F.leaky_relu_(x * 1, s), FLOATING),
    ("elu_", lambda x, s: F.elu_(x * 1, s), WIDE),
    ("elu in place", lambda x, s: F.elu(x * 1, s, inplace=True), WIDE),
    ("celu_", lambda x, s: torch.celu_(x * 1, s), WIDE),
    ("hardtanh_", lambda x, s: F.hardtanh_(x * 1, -s, s), FLOATING),
    ("threshold_", lambda x, s: torch.threshold_(x * 1, s, s), FLOATING),
    ("pow_", lambda x, s: (x.abs() + 0.5).pow_(s), FLOATING),
    ("remainder_", lambda x, s: (x * 1).remainder_(s), FLOATING),
    ("power by its method", lambda x, s: torch.pow(s, x.clamp(-2, 2)), FLOATING),
    ("float_power of the number", lambda x, s: torch.float_power(s, x.clamp(-2, 2)), WIDE),
    ("floor division", lambda x, s: x // s, FLOATING),
    ("remainder of the number", lambda x, s: s % (x.abs() + 1), FLOATING),
    ("fill", lambda x, s: torch.fill(x, s), FLOATING),
    ("full, and a flag", lambda x, s: torch.full((2,), s, requires_grad=False) * x[:, :2], FLOATING),
    ("arange by name", lambda x, s: torch.arange(end=s + 4).sum() * x, WIDE),
    ("greater_equal", lambda x, s: torch.greater_equal(x, s), FLOATING),
    ("clamp", lambda x, s: x.clamp(-s, s), FLOATING),
    ("clamp, one bound", lambda x, s: torch.clamp(x, min=s), FLOATING),
    ("clamp in place", lambda x, s: (x * 1).clamp_(max=s), FLOATING),
    ("full", lambda x, s: x + torch.full((5,), s), FLOATING),
    ("full of a type", lambda x, s: torch.full((2, 2), s, dtype=x.dtype), FLOATING),
    ("full_like", lambda x, s: torch.full_like(x, s), FLOATING),
    ("new_full", lambda x, s: x.new_full((3,), s) * x.sum(), WIDE),
    ("fill_", lambda x, s: torch.empty_like(x).fill_(s), FLOATING),
    ("masked_fill", lambda x, s: x.masked_fill(x > 0, s), FLOATING),
    ("where", lambda x, s: torch.where(x > 0, x, s), FLOATING),
    ("where, first", lambda x, s: torch.where(x > 0, s, x), FLOATING),
    ("where of numbers", lambda x, s: torch.where(x > 0, s, 0.0), FLOATING),
    ("where of a tensor", lambda x, s: x.where(x > 0, s), FLOATING),
    ("index_fill", lambda x, s: x.index_fill(0, torch.tensor([1]), s), FLOATING),
    ("scatter", lambda x, s: x.scatter(1, torch.tensor([[0, 2], [1, 3]]), s), FLOATING),
    ("nan_to_num", lambda x, s: torch.nan_to_num(x, s, 2 * s), FLOATING),
    ("assigned", lambda x, s: assigned(x * 1, s), FLOATING),
    ("comparison", lambda x, s: (x > s) | (x == -s) | x.le(-2 * s), FLOATING),
    ("addmm", lambda x, s: torch.addmm(x[:, :2], x, x.t(), beta=s, alpha=2 * s), WIDE),
    ("addmv", lambda x, s: x[:, 0].addmv(x, x[0], alpha=s), WIDE),
    ("baddbmm", lambda x, s: torch.baddbmm(x[:, :2], x[None], x.t()[None], beta=0, alpha=s), WIDE),
    ("attention", lambda x, s: F.scaled_dot_product_attention(*[x.nan_to_num(0, 1, 1)[None, None]] * 3, scale=s), WIDE),
    ("linspace", lambda x, s: x * torch.linspace(s, 2 * s, 5, dtype=x.dtype), WIDE),
    ("arange", lambda x, s: torch.arange(s, s + 4.75) * x, WIDE),
]


def assigned(x, number):
    x[0, 1:3] = number
    return x


def example(dtype):
    values = [0.0, 0.5, -0.5, 2.0, -2.0, 0.25, -0.75, 30.0, -30.0, 1.0]
    return torch.tensor(values, dtype=dtype).view(2, 5)


def result_and_gradient(function, x, number):
    x = x.clone().requires_grad_()
    result = function(x, number)
    if not result.requires_grad:
        return result, None
    result.float().sum().backward()
    return result.detach(), x.grad


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("function, types", [entry[1:] for entry in FUNCTIONS], ids=[entry[0] for entry in FUNCTIONS])
def test_one_graph_serves_all_numbers(function, types, dtype):
    if dtype not in types:
        pytest.skip("another form")
    x = example(dtype)
    compiled = oxyfuel.compile(function)
    for number in NUMBERS:
        torch.testing.assert_close(compiled(x, number), function(x, number))
    metrics = oxyfuel.metrics()
    assert 1 <= metrics["graphs"] <= 2 and not metrics["breaks"] and not metrics["calls_eager"], metrics["recompile_reasons"]
    oxyfuel.reset()
    compiled = oxyfuel.compile(function)
    for number in NUMBERS:
        assert_same_outcome(compiled, function, x, number)
    assert oxyfuel.metrics()["graphs"] <= 4, oxyfuel.metrics()["recompile_reasons"]


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 0.0, -0.5, 1e300, 7e4, -1.25])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", [entry[0] for entry in FUNCTIONS if torch.float32 in entry[2]])
def test_unusual_numbers_come_last(name, dtype, number):
    [(function, types)] = [entry[1:] for entry in FUNCTIONS if entry[0] == name]
    is_rounded = dtype == torch.float16 and number == 7e4 and name in ("quotient of the number", "lerp")
    # Eager's kernels of hardtanh's gradient disagree about NaN: that for short tensors and that for long ones.
    is_undecided = math.isnan(number) and name in ("hardtanh", "hardtanh_")
    if dtype not in types or is_rounded or is_undecided:
        pytest.skip("another form, or eager rounds to infinity on the way, or refuses what a kernel takes")
    x = example(dtype).abs() + 0.25 if "power" in name or name == "pow_" else example(dtype)
    compiled = oxyfuel.compile(function)
    for s in (0.5, 0.25, number):
        assert_same_outcome(compiled, function, x, s)


def assert_same_outcome(compiled, function, x, number):
    try:
        wanted = result_and_gradient(function, x, number)
    except Exception as error:
        with pytest.raises(type(error)) as raised:
            result_and_gradient(compiled, x, number)
        assert str(raised.value).split("\n")[0] == str(error).split("\n")[0]
    else:
        torch.testing.assert_close(result_and_gradient(compiled, x, number), wanted, equal_nan=True)


@pytest.mark.parametrize("name", ["leaky_relu", "hardtanh", "threshold", "hardshrink", "softshrink", "softplus", "elu", "celu", "elu_",
                                  "celu_", "clamp"])
def test_gradients_of_gradients(name):
    """At borders, too: where PyTorch's formulas for second gradients differ from those of first ones."""
    [(function, _)] = [entry[1:] for entry in FUNCTIONS if entry[0] == name]

    def penalty(function, number):
        borders = [0.0, -0.0, number, -number, 20 / number, -20 / number]
        x = torch.tensor([-2.0, -0.1, 0.2, 0.7, 3.1, *borders]).requires_grad_()
        (first,) = torch.autograd.grad((function(x, number) * x).sum(), x, create_graph=True)
        (plain,) = torch.autograd.grad(function(x, number).sum(), x, create_graph=True)
        return [first, *torch.autograd.grad((first * first).sum(), x)], plain, plain.requires_grad

    compiled = oxyfuel.compile(function)
    for number in NUMBERS:
        torch.testing.assert_close(penalty(compiled, number), penalty(function, number))


@pytest.mark.parametrize("name", ["hardshrink", "leaky_relu", "power of the number", "threshold", "softplus", "full_like", "pad"])
def test_layouts_of_results(name):
    [(function, _)] = [entry[1:] for entry in FUNCTIONS if entry[0] == name]
    for x in (torch.randn(5, 4).t(), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)):
        compiled = oxyfuel.compile(function)
        for number in NUMBERS[:3]:
            torch.testing.assert_close(compiled(x, number), function(x, number), check_stride=True)
        oxyfuel.reset()


@pytest.mark.parametrize("function", [
    lambda x, s: torch.addmm(x[:, :2], x, x.t(), beta=s), lambda x, s: torch.baddbmm(x[None, :, :2], x[None], x.t()[None], alpha=s),
    lambda x, s: F.softplus(x, s), lambda x, s: x.bfloat16() ** s, lambda x, s: F.leaky_relu(x @ x.t(), s)])
def test_under_autocast(function):
    def cast(x, s):
        with torch.autocast("cpu", torch.bfloat16):
            return function(x, s)

    x, compiled = example(torch.float32), oxyfuel.compile(cast)
    for number in NUMBERS:
        torch.testing.assert_close(compiled(x, number), cast(x, number), equal_nan=True)


def test_a_loss_of_two_types():
    def f(x, s):
        return F.huber_loss(x, x.double() * 0.3, delta=s), F.smooth_l1_loss(x, x.double() * 0.3, beta=s)

    x, compiled = example(torch.float32), oxyfuel.compile(f)
    for number in NUMBERS:
        torch.testing.assert_close(compiled(x, number), f(x, number))


def test_a_factor_of_zero_gives_a_gradient_of_zero():
    def f(x, w, s):
        return torch.addmm(w, x, x.t(), beta=0, alpha=s).sum()

    compiled = oxyfuel.compile(f)
    for number in NUMBERS:
        w = torch.full((2, 2), math.nan, requires_grad=True)
        compiled(example(torch.float32), w, number).backward()
        assert torch.equal(w.grad, torch.zeros(2, 2))


@pytest.mark.parametrize("function", [lambda x, s: torch.arange(0, 1, s) * x.sum(), lambda x, s: F.leaky_relu(x * 1, s, inplace=True)])
def test_refused_signs(function):
    x, compiled = example(torch.float32), oxyfuel.compile(function)
    for s in (0.5, 0.25, -1.25, -0.25, 0.125):
        assert_same_outcome(compiled, function, x, s)


NOT_FINITE = {"leaky_relu", "elu", "hardtanh", "threshold", "softplus", "hardshrink", "softshrink", "clamp", "masked_fill", "where",
              "nan_to_num", "comparison", "pad", "product", "sum", "remainder"}


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("function", [entry[1] for entry in FUNCTIONS if entry[0] in NOT_FINITE],
                         ids=[entry[0] for entry in FUNCTIONS if entry[0] in NOT_FINITE])
def test_values_that_are_not_finite(function, dtype):
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0], dtype=dtype)
    compiled = oxyfuel.compile(function)
    for number in NUMBERS:
        torch.testing.assert_close(compiled(x, number), function(x, number), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
@pytest.mark.parametrize("function", [
    lambda x, s: x * s, lambda x, s: x / s, lambda x, s: x + s, lambda x, s: s - x if x.dtype != torch.bool else x + s,
    lambda x, s: (x > s) & (x <= 4 * s), lambda x, s: torch.where(x > 0, x, s), lambda x, s: x.clamp(max=s)
    if x.dtype != torch.bool else x * s, lambda x, s: torch.full_like(x, s), lambda x, s: x.sum() * s])
def test_beside_tensors_of_integers(function, dtype):
    x = torch.arange(6).view(2, 3).to(dtype)
    compiled = oxyfuel.compile(function)
    for number in NUMBERS:
        torch.testing.assert_close(compiled(x, number), function(x, number))


@pytest.mark.parametrize("function", [
    lambda x, s: x.masked_fill(x > 0, s), lambda x, s: torch.full_like(x, s), lambda x, s: torch.where(x > 0, x, s),
    lambda x, s: x.clamp(max=s), lambda x, s: assigned(x.clone(), s)])
@pytest.mark.parametrize("dtype, number", [(torch.float32, 1e300), (torch.float16, 1e6), (torch.float32, math.inf)])
def test_numbers_that_the_type_does_not_hold(function, dtype, number):
    x = example(dtype)
    compiled = oxyfuel.compile(function)
    for s in (0.5, 0.25, number, 0.75):
        try:
            wanted = function(x, s)
        except RuntimeError as error:
            with pytest.raises(RuntimeError) as raised:
                compiled(x, s)
            assert str(raised.value) == str(error)
        else:
            torch.testing.assert_close(compiled(x, s), wanted)


@pytest.mark.parametrize("function", [
    lambda x, s: F.softshrink(x, s), lambda x, s: F.celu(x, s), lambda x, s: F.hardtanh(x, s, 0.5), lambda x, s: F.huber_loss(x, x, delta=s),
    lambda x, s: F.threshold(x, s), lambda x, s: torch.arange(0.0, 2.0, s), lambda x, s: x.where(x > 0)])
def test_what_eager_refuses(function):
    x = example(torch.float32)
    compiled = oxyfuel.compile(function)
    for s in (0.25, 0.5, -1.0, 0.0, 1.0, 2.0):
        try:
            wanted = function(x, s)
        except Exception as error:
            with pytest.raises(type(error)) as raised:
                compiled(x, s)
            assert str(raised.value) == str(error)
        else:
            torch.testing.assert_close(compiled(x, s), wanted)


def test_numbers_that_are_calculated_of_sizes():
    def f(x):
        n = x.size(1)
        scaled = F.leaky_relu(x, 1 / n).clamp(max=n ** 0.5)
        return torch.where(scaled > 0.5 / n, scaled, -1 / n) + torch.linspace(0.5, n - 0.5, n) / n

    compiled = oxyfuel.compile(f, dynamic=True)
    for n in (3, 4, 5, 7, 9, 12):
        x = torch.randn(2, n)
        torch.testing.assert_close(compiled(x), f(x))
    assert oxyfuel.metrics()["graphs"] == 1


def test_arange_from_a_float_to_a_size():
    def f(x):
        return x + torch.arange(0.5, x.size(1)) + torch.arange(0, 1, 1 / x.size(1)).sum()

    compiled = oxyfuel.compile(f)
    for n in (3, 4, 5, 7, 9, 12):
        x = torch.randn(2, n)
        torch.testing.assert_close(compiled(x), f(x))
    assert oxyfuel.metrics()["graphs"] == 2


def test_the_line_that_needs_a_number():
    def f(x):
        return F.dropout(x, 0.5 / x.size(1), training=False) + F.layer_norm(x, (2,), eps=1 / x.size(0))

    compiled = oxyfuel.compile(f, dynamic=True)
    for n in (3, 4):
        compiled(torch.randn(n, 2))
    reason = oxyfuel.metrics()["recompile_reasons"][-1]
    line = f.__code__.co_firstlineno + 1
    assert f"truediv(1, x.size(0)) (test_float_arguments.py:{line} in f): was 0.333" in reason
    assert reason.endswith("(only a number can be used there: each one is compiled)")


def test_a_mark_that_a_float_contradicts():
    def f(x):
        return F.layer_norm(x, (2,), eps=1 / x.size(0))

    x = torch.randn(3, 2)
    oxyfuel.mark_dynamic(x, 0)
    with pytest.raises(RuntimeError, match=r"x.size\(0\) is marked dynamic, but the program takes it for 3"):
        oxyfuel.compile(f)(x)


def test_floats_that_only_data_tell():
    def f(x):
        s = x.abs().max().item()
        return F.leaky_relu(x, s), F.elu(x, s), torch.where(x > 0, x, s), torch.full_like(x, s), F.pad(x, (1, 1), value=s)

    compiled = oxyfuel.compile(f, fullgraph=True)
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(3, 4)
        torch.testing.assert_close(compiled(x), f(x))
    assert oxyfuel.metrics()["graphs"] == 1


def test_a_calculated_nan():
    def f(x, s):
        return F.layer_norm(x, (5,), eps=abs(s)), x * s

    compiled, x = oxyfuel.compile(f), torch.randn(2, 5)
    for s in (0.5, 0.25, math.nan, 0.125, math.nan):
        torch.testing.assert_close(compiled(x, s), f(x, s), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [
    lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    lambda x: F.cross_entropy(x, torch.zeros(x.size(0), dtype=torch.long), label_smoothing=0.1),
    lambda x: torch.std(x, 1), lambda x: torch.var_mean(x, 0)[0]])
def test_floats_that_torch_computes_of_sizes(function, dynamic, dtype):
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for n in (3, 4, 5, 7, 9):
        x = torch.randn(4, n, generator=torch.Generator().manual_seed(n)).to(dtype)
        close = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
        torch.testing.assert_close(compiled(x), function(x), **close)
        wanted, actual = (result_and_gradient(lambda x, _: f(x), x, None) for f in (function, compiled))
        torch.testing.assert_close(actual, wanted, **close)
    assert oxyfuel.metrics()["graphs"] <= (4 if dynamic is None else 2), oxyfuel.metrics()["recompile_reasons"]
