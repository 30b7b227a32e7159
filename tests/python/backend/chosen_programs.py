"""Programs by hand, one for each form and each special case of the Triton printer: name -> function of a Program."""

import torch

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def random(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + 1)).to(dtype)


@program
def sums_in_parts(p):
    x = p.input(random(70001 - 1))
    return [p.call("sum", x), p.call("amax", x, [0], True), p.call("prod", p.call("tanh", x))]


@program
def doubles_of_singles(p):
    x = p.call("_to_copy", p.input(random(5, 300)), dtype=torch.float64)
    mean = p.call("var_mean.correction", x, [1], correction=1, keepdim=False)
    return [p.call("_softmax", x, 1, False), p.call("sum.dim_IntList", x, [0], False), p.call("prod", x), *mean]


@program
def columns_in_parts(p):
    x = p.input(random(1200, 72))
    return [p.call("sum.dim_IntList", x, [0], False), *p.call("var_mean.correction", x, [0], correction=1, keepdim=False)]


@program
def columns_in_uneven_parts(p):
    """Rows that no number of parts divides, or few: the last part is shorter."""
    x, n = p.input(random(1201, 72)), p.input(torch.randint(-9, 9, (1201, 72), generator=torch.Generator().manual_seed(1)))
    sums = [p.call("sum.dim_IntList", x, [0], False), p.call("mean.dim", p.call("exp", x), [0], True), p.call("amax", x, [0], False)]
    low = p.call("amin", p.call("add.Scalar", x, 20.0), [0], False)
    whole = [p.call("sum.dim_IntList", n, [0], False), p.call("amax", p.call("sub.Scalar", n, 50), [0], False), p.call("argmax", n, 0, False)]
    half, narrow = p.input(random(521, 134, dtype=torch.bfloat16)), p.input(random(3 * 353, 65, dtype=torch.float16))
    truth = [p.call("any.dim", p.call("gt.Scalar", x, 3.2), 0), p.call("all.dim", p.call("lt.Scalar", x, 3.2), 0)]
    product = p.call("prod.dim_int", p.call("add.Scalar", p.call("mul.Scalar", x, 0.01), 1.0), 0)
    return [*sums, low, *whole, p.call("sum.dim_IntList", half, [0], False), p.call("mean.dim", narrow, [0], False), *truth, product]


@program
def variance_in_uneven_parts(p):
    x = p.input(random(1201, 72) * 3 + 50)
    tall = p.input(random(40009, 3) + 9)  # parts of several steps
    row, image = p.input(random(1, 70001) - 7), p.input(random(3, 24, 37, 37).to(memory_format=torch.channels_last))
    results = [p.call("var_mean.correction", t, [0], correction=1, keepdim=False) for t in (x, tall)]
    results.append(p.call("var_mean.correction", row, [1], correction=0, keepdim=True))
    results.append(p.call("var_mean.correction", image, [0, 2, 3], correction=0, keepdim=False))
    double = p.call("_to_copy", x, dtype=torch.float64)
    return [*(t for pair in results for t in pair), *p.call("var_mean.correction", double, [0], correction=1, keepdim=False)]


@program
def sums_in_uneven_parts(p):
    x = p.input(random(70001))
    image = p.input(random(2, 16, 59, 61).to(memory_format=torch.channels_last))
    long = p.input(random(2, 3, 40009))
    padded = p.call("constant_pad_nd", p.input(random(1009, 70)), [0, 0, 5, 7], 1.0)
    table, ids = p.input(random(300, 66)), p.input(torch.randint(0, 300, (1013,), generator=torch.Generator().manual_seed(2)))
    sums = [p.call("sum", x), p.call("amax", x, [0], True), p.call("mean", p.call("pow.Tensor_Scalar", x, 2))]
    more = [p.call("sum.dim_IntList", image, [0, 2, 3], False), p.call("sum.dim_IntList", long, [0, 2], False), p.call("sum.dim_IntList", padded, [0], False)]
    return [*sums, *more, p.call("sum.dim_IntList", p.call("embedding", table, ids), [0], False)]


@program
def layer_norm_backward_in_parts(p):
    """Two sums over rows and two over columns of the same operands, and a softmax whose rows are in uneven parts."""
    grad, x, w = p.input(random(1603, 64)), p.input(random(1603, 64)), p.input(random(64))
    scaled = p.call("mul.Tensor", grad, w)
    along = p.call("mean.dim", p.call("mul.Tensor", scaled, x), [1], True)
    centred = p.call("sub.Tensor", p.call("sub.Tensor", scaled, p.call("mean.dim", scaled, [1], True)), p.call("mul.Tensor", x, along))
    sums = [p.call("sum.dim_IntList", t, [0], False) for t in (p.call("mul.Tensor", grad, x), grad)]
    return [centred, *sums, p.call("_softmax", p.input(random(1, 80021)), 1, False)]


@program
def sums_of_columns_beside_rows(p):
    """Column sums of what a kernel of rows has read or made, and one of what an operator of a library makes in between."""
    g, x, w = (p.input(random(*s)) for s in ((7, 239, 72), (7, 239, 72), (72,)))
    mean, rstd = p.input(random(7, 239, 1)), p.input(random(7, 239, 1).abs() + 0.5)
    grads = p.call("native_layer_norm_backward", g, x, [72], mean, rstd, w, w, [True, True, True])
    flat = p.call("view", grads[0], [7 * 239, 72])
    bias = p.call("sum.dim_IntList", flat, [0], True)
    y = p.input(random(3001, 33, dtype=torch.float16))
    soft = p.call("_softmax", y, 1, False)
    several = [p.call("sum.dim_IntList", t, [0], False) for t in (soft, y, p.call("mm", soft, p.input(random(33, 33, dtype=torch.float16))))]
    return [*grads, bias, soft, *several]


@program
def long_rows_with_sums_of_columns(p):
    """One row at a time, and the gradient of an RMS norm's weight."""
    g, x = p.input(random(1601, 1100)), p.input(random(1601, 1100))
    scale = p.call("rsqrt", p.call("mean.dim", p.call("pow.Tensor_Scalar", x, 2), [1], True))
    normal = p.call("mul.Tensor", x, scale)
    weight = p.call("sum.dim_IntList", p.call("mul.Tensor", g, normal), [0], False)
    along = p.call("mean.dim", p.call("mul.Tensor", g, normal), [1], True)
    return [weight, p.call("mul.Tensor", scale, p.call("sub.Tensor", g, p.call("mul.Tensor", normal, along)))]


@program
def softmax_in_parts(p):
    x = random(2, 40000)
    x[0, :20000] = -float("inf")
    x = p.input(x)
    return [p.call("_log_softmax", x, 1, False), p.call("_softmax", p.input(random(1, 80000, dtype=torch.bfloat16)), 1, False)]


@program
def variance_in_parts(p):
    x = p.input(random(3, 33000) + 100)
    return [p.call("native_layer_norm", x, [33000], None, None, 1e-5)[0], *p.call("var_mean.correction", x, [1], correction=0, keepdim=True)]


@program
def softmax_of_infinities(p):
    x = random(7, 33)
    x[0, 3], x[1, 4], x[2] = float("nan"), float("inf"), -float("inf")
    x[3, 5:] = -float("inf")
    return [p.call("_softmax", p.input(x), 1, False), p.call("_softmax", p.input(x.clone()), 0, False)]


@program
def long_softmax_of_infinities(p):
    x = random(300, 20000)[:9].contiguous()
    x[0, 3], x[1, 4], x[2] = float("nan"), float("inf"), -float("inf")
    x[3, 5:] = -float("inf")
    return [p.call("_softmax", p.input(x), 1, False)]


@program
def rows_through_memory(p):
    y = p.call("add.Tensor", p.input(random(300, 20000)[:5].contiguous()), p.input(random(20000)))
    return [p.call("gelu", p.call("native_layer_norm", y, [20000], p.input(random(20000)), None, 1e-5)[0])]


@program
def a_row_read_in_another_order(p):
    x = p.call("exp", p.input(random(6, 8, 12)))
    total = p.call("sum.dim_IntList", x, [1, 2], True)
    turned = p.call("permute", p.call("div.Tensor", x, total), [0, 2, 1])
    return [p.call("clone", turned, memory_format=torch.contiguous_format), p.call("amax", turned, [2], False)]


@program
def positions(p):
    x = random(5, 301)
    x[0, 7], x[0, 9], x[1, 3], x[1, 200] = float("nan"), float("nan"), 9.0, 9.0
    x = p.input(x)
    y = p.input(torch.randint(-3, 3, (40, 9), generator=torch.Generator().manual_seed(1)))
    long = p.input(random(2, 30000).round())
    return [p.call("argmax", x, 1, False), p.call("argmin", x, 0, False), p.call("argmax", y, 0, True), p.call("argmin", y), p.call("argmax", long, 1, False)]


def growth(p, x):
    """Factors whose products stay small."""
    return p.call("add.Scalar", p.call("mul.Scalar", p.call("tanh", x), 0.1), 1.0)


@program
def scans(p):
    x, half = p.input(random(7, 100)), p.input(random(40, 9, dtype=torch.bfloat16))
    whole, truth = p.input(torch.randint(-9, 9, (5, 33), generator=torch.Generator().manual_seed(1))), p.input(random(5, 33) > 0)
    narrow = p.input(torch.randint(0, 255, (3, 50), generator=torch.Generator().manual_seed(2)).to(torch.uint8))
    wide = p.call("_to_copy", half, dtype=torch.float32)
    sums = [p.call("cumsum", t, 1) for t in (x, half, wide, whole, truth, narrow)]
    typed = [p.call("cumsum", whole, 1, dtype=t) for t in (torch.float32, torch.int32, torch.int16)]
    others = [p.call("cumprod", growth(p, x), 1), p.call("cumprod", whole, 0), p.call("logcumsumexp", x, 1), p.call("logcumsumexp", half, 0)]
    ones = p.call("cumsum", p.call("ones_like", x), 1)
    alone = [p.call("cumsum", p.input(random(*s)), -1) for s in ((), (1,), (300,), (3, 1), (4, 0), (0, 4))]
    return [*sums, *typed, *others, ones, *alone]


@program
def scans_of_columns(p):
    """Short and long ones, with what they read and with who reads them."""
    results = []
    for shape, dim in (((50, 70), 0), ((300, 9), 0), ((3, 400, 40), 1), ((5, 6, 70), 0)):
        x = p.input(random(*shape))
        y = p.call("cumsum", p.call("exp", x), dim)
        z = p.call("mul.Tensor", p.call("add.Tensor", y, p.input(random(shape[-1]))), x)
        results += [y, p.call("_to_copy", z, dtype=torch.float16), p.call("cumprod", growth(p, x), dim), p.call("logcumsumexp", x, dim)]
    turned = p.call("permute", p.input(random(37, 90)), [1, 0])
    return [*results, p.call("cumsum", turned, 0), p.call("cumsum", turned, 1)]


@program
def scans_of_long_rows(p):
    """A step goes on where the one before has ended."""
    x = p.input(random(3, 20000))
    y, whole = p.call("cumsum", x, 1), p.input(torch.randint(-9, 9, (2, 30001), generator=torch.Generator().manual_seed(1)))
    small = p.call("add.Scalar", p.call("mul.Scalar", p.call("tanh", x), 1e-2), 1.0)
    results = [y, p.call("relu", y), p.call("amax", y, [1], False), p.call("_softmax", y, 1, False), p.call("cumsum", whole, 1)]
    more = [p.call("cumprod", small, 1), p.call("logcumsumexp", x, 1), p.call("cumsum", p.input(random(16384)), 0)]
    return [*results, *more, p.call("flip", p.call("cumsum", p.call("flip", x, [1]), 1), [1])]


@program
def scans_of_infinities(p):
    x = random(7, 33)
    x[0, 3], x[1, 4], x[2], x[3, 5], x[3, 9] = float("nan"), float("inf"), -float("inf"), float("inf"), -float("inf")
    x[4, :8], x[5, 2], x[6, 3] = -float("inf"), 0, -0.0
    x = p.input(x)
    return [p.call(name, x, dim) for name in ("cumsum", "cumprod", "logcumsumexp") for dim in (0, 1)]


@program
def scans_read_again(p):
    """By the same row in the same order, in another one, and by what needs all of the row first."""
    x = p.input(random(12, 200))
    y = p.call("cumsum", x, 1)
    last = p.call("div.Tensor", y, p.call("add.Scalar", p.call("abs", p.call("slice.Tensor", y, 1, 199, 200)), 1.0))
    scaled = p.call("sub.Tensor", y, p.call("amax", y, [1], True))
    again = p.call("cumsum", p.call("sin", y), 1)
    both = p.call("cumsum", p.call("cumsum", x, 0), 1)
    moved = p.call("add.Tensor", p.call("flip", y, [1]), x)
    columns = p.call("sum.dim_IntList", y, [0], False)
    turned = p.call("clone", p.call("permute", y, [1, 0]), memory_format=torch.contiguous_format)
    return [last, scaled, p.call("_softmax", y, 1, False), again, both, moved, columns, turned]


@program
def gradients_of_scans(p):
    results = []
    for shape, dim in (((12, 200), 1), ((100, 40), 0), ((3, 50, 40), 1)):
        gradient, x = p.input(random(*shape)), p.input(random(*shape) + 1)
        back = p.call("flip", p.call("cumsum", p.call("flip", p.call("mul.Tensor", gradient, x), [dim]), dim), [dim])
        results += [back, p.call("mul.Tensor", back, x)]
    return results


@program
def scans_beside_sums_of_columns(p):
    """The kernel of the rows goes through them in turn, and adds up columns of what it scans."""
    x = p.input(random(1700, 70))
    y = p.call("cumsum", x, 1)
    return [y, p.call("sum.dim_IntList", x, [0], False), p.call("sum.dim_IntList", p.call("sin", y), [0], False)]


@program
def integer_division(p):
    a = p.input(torch.tensor([7, -7, 7, -7, 0, 5, -9, 8]))
    b = p.input(torch.tensor([2, 2, -2, -2, 3, -5, 4, -3]))
    modes = [p.call("div.Tensor_mode", a, b, rounding_mode="floor"), p.call("div.Tensor_mode", a, b, rounding_mode="trunc")]
    return [*modes, p.call("remainder.Tensor", a, b), p.call("fmod.Tensor", a, b), p.call("bitwise_and.Tensor", a, b)]


@program
def floating_division(p):
    a, b = p.input(torch.tensor([7.5, -7.5, 7.5, -7.5, 0.0, 5.0, 1.0, float("inf")])), p.input(torch.tensor([2.0, 2.0, -2.0, -2.0, 3.0, 0.0, 0.1, 2.0]))
    modes = [p.call("div.Tensor_mode", a, b, rounding_mode="floor"), p.call("div.Tensor_mode", a, b, rounding_mode="trunc")]
    return [*modes, p.call("remainder.Tensor", a, b), p.call("fmod.Tensor", a, b)]


@program
def powers(p):
    x, n = p.input(torch.tensor([2, -1, 1, 3, 0, -2])), p.input(torch.tensor([5, -3, -2, 3, 0, 3]))
    y = p.input(random(9).abs())
    return [p.call("pow.Tensor_Scalar", x, 3), p.call("pow.Tensor_Tensor", y, p.input(random(9))), *(p.call("pow.Tensor_Scalar", y, e) for e in (2, 0.5, -1, -2, 3, 2.5))]


@program
def casts(p):
    x = p.input(random(70) * 50)
    types = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool, torch.float16, torch.bfloat16, torch.float64)
    return [p.call("_to_copy", p.call("abs", x) if t == torch.uint8 else x, dtype=t) for t in types]


@program
def truth(p):
    a, b = p.input(random(13, 17) > 0), p.input(random(17) > 0)
    values = [p.call(name, a, b) for name in ("logical_and", "logical_or", "logical_xor", "eq.Tensor", "lt.Tensor", "ge.Tensor")]
    return [*values, p.call("logical_not", a), p.call("any.dim", a, 1), p.call("all.dim", a, 0), p.call("sum.dim_IntList", a, [1])]


@program
def cross_entropy(p):
    logits, labels = p.input(random(9, 50)), p.input(torch.tensor([3, 49, 0, -100, 7, 8, -100, 1, 2]))
    return [p.call("nll_loss_forward", p.call("_log_softmax", logits, 1, False), labels, None, 1, -100)[0]]


@program
def cross_entropy_backward(p):
    """The index is one element of each row."""
    logits, labels = p.input(random(9, 50)), p.input(torch.tensor([3, 49, 0, -100, 7, 8, -100, 1, 2]))
    output = p.call("_log_softmax", logits, 1, False)
    _, total = p.call("nll_loss_forward", output, labels, None, 1, -100)
    gradient = p.call("nll_loss_backward", p.input(random()), output, labels, None, 1, -100, total)
    return [gradient, p.call("_log_softmax_backward_data", gradient, output, 1, torch.float32)]


@program
def one_element_a_row(p):
    size, index = (6, 70, 5), p.input(torch.randint(0, 70, (6, 1, 5), generator=torch.Generator().manual_seed(3)))
    x, source = p.call("full", [*size], 0.5, dtype=torch.bfloat16), p.input(random(6, 1, 5, dtype=torch.bfloat16))
    y = p.call("scatter.src", x, 1, index, source)
    turned = p.call("scatter_add", p.call("exp", y), 1, index, p.call("relu", source))
    return [p.call("sum.dim_IntList", y, [1], True), p.call("sub.Tensor", y, p.call("amax", turned, [1], True)), turned]


@program
def embedding(p):
    table, ids = p.input(random(11, 24, dtype=torch.bfloat16)), p.input(torch.tensor([[1, 10, 3], [0, 0, 7]]))
    return [p.call("embedding", table, ids)]


@program
def embedding_backward(p):
    return [p.call("embedding_dense_backward", p.input(random(2, 3, 24)), p.input(torch.tensor([[1, 10, 3], [0, 0, 1]])), 11, -1, False)]


@program
def windows(p):
    x = p.input(random(2, 8, 15, 13))
    return [p.call("max_pool2d_with_indices", x, [3, 3], [2, 2], [1, 1], [1, 1], False)[0], p.call("avg_pool2d", x, [2, 2], [2, 2], [0, 0], False, True, None)]


@program
def depthwise_convolutions(p):
    """Windows that move by two, with holes, and of one row; in both layouts; and the gradient of an input."""
    results = []
    for sizes, window, stride, padding, dilation, memory_format, dtype in (
        ((2, 24, 9, 11), (3, 3), [2, 2], [1, 1], [1, 1], torch.channels_last, torch.bfloat16),
        ((1, 5, 13, 12), (5, 3), [1, 1], [4, 0], [2, 1], torch.contiguous_format, torch.float32),
        ((2, 16, 7, 8), (1, 7), [1, 3], [0, 3], [1, 1], torch.channels_last, torch.float32),
    ):
        x, weight = random(*sizes, dtype=dtype).to(memory_format=memory_format), random(sizes[1], 1, *window, dtype=dtype)
        y = p.call("convolution", p.input(x), p.input(weight), None, stride, padding, dilation, False, [0, 0], sizes[1])
        results.append(p.call("relu", y))
    x, weight, gradient = random(2, 8, 9, 6), random(8, 1, 3, 5), random(2, 8, 9, 6) + 1
    mask = [True, True, False]
    x, weight, gradient = p.input(x), p.input(weight), p.input(gradient)
    backward = p.call("convolution_backward", gradient, x, weight, [8], [1, 1], [2, 2], [2, 1], False, [0, 0], 8, mask)
    return [*results, *backward[:2]]


@program
def group_norm(p):
    y = p.call("native_group_norm", p.input(random(2, 12, 5, 7)), p.input(random(12)), p.input(random(12)), 2, 12, 35, 4, 1e-5)[0]
    return [p.call("silu", y)]


@program
def group_norm_backward(p):
    results = []
    for sizes, memory_format, dtype in (((2, 12, 5, 7), torch.contiguous_format, torch.float32), ((3, 8, 9, 16), torch.channels_last, torch.bfloat16), ((2, 24, 40, 3), torch.contiguous_format, torch.bfloat16)):
        x, grad = (p.input(random(*sizes, dtype=dtype).to(memory_format=memory_format)) for _ in range(2))
        weight, numbers = p.input(random(sizes[1], dtype=dtype)), (sizes[0], sizes[1], sizes[2] * sizes[3], 4)
        _, mean, rstd = p.call("native_group_norm", x, weight, None, *numbers, 1e-5)
        results += p.call("native_group_norm_backward", grad, x, mean, rstd, weight, *numbers, [True, True, True])
    return results


@program
def rms_norms(p):
    x, weight = p.input(random(7, 5, 40)), p.input(random(5, 40))
    half = p.input(random(13, 300, dtype=torch.bfloat16) * 0.01)
    long = p.input(random(3, 20000))
    results = [p.call("_fused_rms_norm", x, [5, 40], weight, 1e-6), p.call("_fused_rms_norm", half, [300], None, None), p.call("_fused_rms_norm", long, [20000], None, None)]
    return [t for pair in results for t in pair]


@program
def tiles(p):
    x = p.input(random(3, 70, 50, dtype=torch.bfloat16))
    y = p.call("add.Tensor", p.call("permute", x, [0, 2, 1]), p.input(random(3, 50, 70, dtype=torch.bfloat16)))
    return [y, p.call("clone", p.call("permute", p.input(random(40, 30, 20)), [2, 1, 0]), memory_format=torch.contiguous_format)]


@program
def nothing(p):
    x = p.input(random(0, 5))
    return [p.call("exp", x), p.call("sum.dim_IntList", x, [0], False), p.call("sum", x), p.call("all", p.input(torch.zeros(3, 0)))]


@program
def one_element(p):
    x = p.input(random())
    return [p.call("exp", x), p.call("sum", x), p.call("_softmax", p.input(random(1, 1)), 1, False)]


@program
def special_functions(p):
    x = p.input(random(40).abs().clamp(0.05, 0.95))
    names = ("asin", "acos", "atan", "sinh", "cosh", "tan", "asinh", "atanh", "erfc", "log10", "log2", "exp2", "expm1", "log1p", "round", "trunc", "frac")
    return [*(p.call(name, x) for name in names), p.call("atan2", x, p.input(random(40))), p.call("acosh", p.call("add.Scalar", x, 1.0))]


@program
def nan_wins(p):
    x = random(4, 40)
    x[1, 3] = float("nan")
    x = p.input(x)
    return [p.call("amax", x, [1], False), p.call("amin", x, [0], False), p.call("maximum", x, p.input(random(40))), p.call("clamp", x, -0.5, 0.5)]


@program
def sizes_that_vary_in_rows(p):
    p.varies(37)
    x = p.input(random(37, 50))
    y = p.call("native_layer_norm", p.call("add.Tensor", x, p.input(random(50))), [50], None, None, 1e-5)[0]
    return [y, p.call("_softmax", x, 0, False), p.call("sum.dim_IntList", x, [0], False)]


@program
def sizes_that_vary_along_rows(p):
    p.varies(37)
    x = p.input(random(5, 37, dtype=torch.bfloat16))
    return [p.call("_softmax", x, 1, False), p.call("gelu", x), p.call("argmax", x, 1, False), *p.call("var_mean.correction", x, [1], correction=1, keepdim=True)]


@program
def scans_of_sizes_that_vary(p):
    p.varies(37)
    x = p.input(random(5, 37))
    scanned = [p.call("cumsum", x, dim) for dim in (0, 1)]
    back = p.call("flip", p.call("cumsum", p.call("flip", x, [1]), 1), [1])
    return [*scanned, p.call("relu", scanned[1]), p.call("logcumsumexp", x, 1), back, p.call("cumsum", p.input(random(37, 50)), 0)]


@program
def joined(p):
    """Tensors that are joined: each element of the result chooses one of them."""
    x, y, column = p.input(random(3, 5, 14)), p.input(random(3, 2, 14)), p.input(random(3, 1, 14).exp())
    half, whole = p.input(random(4, 9, dtype=torch.float16)), p.input(torch.arange(18).reshape(2, 9) + 2040)
    truth, none = p.input(random(4, 9) > 0), p.input(torch.empty(0))
    middle = p.call("cat", [x, y, column], 1)
    strided = p.call("cat", [p.call("permute", x, [2, 0, 1]), p.call("permute", y, [2, 0, 1])], 2)
    heavy = p.call("cat", [p.call("gelu", x), p.call("log", column), none, p.call("exp", y)], 1)
    rows = p.call("cat", [p.call("select.int", x, 2, 3), p.call("select.int", x, 2, 0)], 0)
    lengths = [p.call("cat", [t, u], 0) for t, u in ((half, whole), (truth, whole), (truth, truth))]
    rounded = p.call("mul.Scalar", lengths[0], 1.5)  # of whole numbers that halves do not have
    normed = [p.call("native_layer_norm", p.call("cat", [x, y], 1), [14], None, None, 1e-5)[0], p.call("native_layer_norm", strided, [7], None, None, 1e-5)[0]]
    parts = [p.call("slice.Tensor", p.call("cat", [x, y], 1), 1, *ends) for ends in ((1, 4), (4, 7))]
    nested = p.call("cat", [p.call("cat", [x, y], 1), p.call("sin", x)], 1)
    summed = p.call("sum.dim_IntList", p.call("cat", [y, x], 1), [1], False)
    return [middle, strided, heavy, rows, *lengths, rounded, *normed, *(p.call("neg", t) for t in parts), nested, summed]


@program
def stacked(p):
    xs = [p.input(random(6, 21)) for _ in range(4)]
    stacks = [p.call("stack", xs, dim) for dim in (0, 1, 2)]
    flat = p.call("view", p.call("stack", xs[:2], 2), [6, 42])
    return [*stacks, p.call("relu", flat), p.call("stack", [xs[0], xs[0], p.call("tanh", xs[0])], 1)]


@program
def many_joined(p):
    """More tensors than an element chooses among, of the same rows and of others."""
    same, others = [p.input(random(7, 10)) for _ in range(11)], [p.input(random(1 + k % 3, 13)) for k in range(17)]
    return [p.call("stack", same, 1), p.call("cat", same, 1), p.call("cat", others, 0)]


@program
def parts_of_one_kernel(p):
    """What is joined is computed of the same elements: one kernel writes all parts."""
    x = p.input(random(4, 12, 10))
    both = p.call("cat", [p.call("mul.Scalar", x, 2), p.call("add.Scalar", x, 1)], 1)
    reduced = p.call("cat", [p.call("mean.dim", x, [1], True), p.call("amax", x, [1], True)], 1)
    soft = p.call("cat", [p.call("_softmax", x, -1, False), p.call("native_layer_norm", x, [10], None, None, 1e-5)[0]], 0)
    kept = p.call("gelu", x)
    later = p.call("cat", [kept, p.call("neg", kept), x], 2)
    return [both, p.call("exp", reduced), soft, kept, p.call("sin", later), p.call("cat", [both, both], 0)]


@program
def joined_sizes_that_vary(p):
    p.varies(37)
    x, y, z = p.input(random(3, 37, 4)), p.input(random(3, 6, 4)), p.input(random(3, 37, 1))
    rows = p.call("cat", [x, y], 1)
    return [rows, p.call("relu", p.call("cat", [y, x, y], 1)), p.call("cat", [z, x], 2), p.call("stack", [x, p.call("exp", x)], 0), p.call("_softmax", rows, 1, False)]


@program
def sizes_that_vary_in_tiles(p):
    p.varies(37)
    x = p.input(random(3, 37, 40))
    turned = p.call("clone", p.call("permute", x, [0, 2, 1]), memory_format=torch.contiguous_format)
    return [turned, p.call("cat", [x, x], 1), p.call("constant_pad_nd", x, [0, 0, 1, 1], 2)]


def products_of(p, row, count):
    """Those of the row with `count` others."""
    weights = p.input(random(count, row.shape[-1], dtype=row.dtype))
    return p.call("sum.dim_IntList", p.call("mul.Tensor", row, weights), [1], False)


@program
def rows_that_many_programs_make(p):
    results = []
    for length, count in ((64, 300), (97, 97), (300, 300), (512, 265)):
        x = p.input(random(1, length) * 3 + 1)
        layer = p.call("native_layer_norm", x, [length], p.input(random(length)), p.input(random(length)), 1e-5)[0]
        results += [products_of(p, layer, count), products_of(p, layer, count + 7)]
        soft = p.call("_softmax", p.call("mul.Tensor", x, 2.0), 1, False)
        results += [products_of(p, soft, count), p.call("amax", p.call("add.Tensor", soft, p.input(random(count, length))), [1], False)]
    return results


@program
def rows_of_halves_that_many_programs_make(p):
    x = p.input(random(1, 256, dtype=torch.bfloat16))
    wide = p.call("_to_copy", x, dtype=torch.float32)
    root = p.call("rsqrt", p.call("add.Scalar", p.call("mean.dim", p.call("mul.Tensor", wide, wide), [-1], True), 1e-6))
    norm = p.call("_to_copy", p.call("mul.Tensor", wide, root), dtype=torch.bfloat16)
    return [products_of(p, norm, 256), products_of(p, norm, 400)]


@program
def row_and_gathered_rows(p):
    """A row that is the same for all programs, beside rows that an index names."""
    token, table = p.input(random(1, 96)), p.input(random(10, 96))
    norm = p.call("native_layer_norm", p.call("expand", token, [70, 96]), [96], None, None, 1e-5)[0]
    index = p.input(torch.randint(0, 10, (70,), generator=torch.Generator().manual_seed(3)))
    return [p.call("add.Tensor", p.call("add.Tensor", norm, p.input(random(70, 96))), p.call("embedding", table, index))]
