#!/usr/bin/env python3
"""Writes the graphs of the golden texts beside it: programs whose kernels a GPU's memory limits, at sizes that are worth
measuring. What the printer makes of them is written by `OXYFUEL_UPDATE_GOLDEN=1 build/oxyfuel_tests -tc="*Triton*"`."""

import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "python" / "backend"))
from graph_programs import Program, meta  # noqa: E402

HALF, SINGLE = torch.bfloat16, torch.float32
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Writer(Program):
    def tensor(self, *shape, dtype=HALF):
        return self.input(torch.empty(shape, dtype=dtype, device="meta"))

    def softmax_rows(self, matrix):
        """What a training graph reduces a softmax's rows to."""
        results = [torch.empty(matrix.shape[0], 1, dtype=SINGLE, device="meta") for _ in range(2)]
        defined = ", ".join(f"{self.define(r)} : {meta(r)}" for r in results)
        self.lines.append(f"  {defined} = oxyfuel::softmax_rows({self.argument(matrix)}, 1)")
        return results

    def laid_out(self, shape, strides, dtype=HALF):
        return self.input(torch.empty_strided(shape, strides, dtype=dtype, device="meta"))


@program
def bias_gelu(p):
    x = p.call("add.Tensor", p.tensor(8192, 4096), p.tensor(4096))
    return [p.call("gelu", x)]


@program
def gated_silu(p):
    both = p.tensor(8192, 11008)
    gate, up = p.call("slice.Tensor", both, 1, 0, 5504), p.call("slice.Tensor", both, 1, 5504, 11008)
    return [p.call("mul.Tensor", p.call("silu", gate), up)]


@program
def transpose(p):
    return [p.call("clone", p.call("permute", p.tensor(8192, 4096, dtype=SINGLE), [1, 0]), memory_format=torch.contiguous_format)]


@program
def channels_last_relu(p):
    x = p.call("relu", p.tensor(32, 256, 56, 56))
    return [p.call("clone", x, memory_format=torch.channels_last)]


@program
def depthwise_convolution(p):
    x = p.laid_out((16, 192, 28, 28), (150528, 1, 5376, 192))
    y = p.call("convolution", x, p.tensor(192, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 192)
    return [p.call("clone", y, memory_format=torch.channels_last)]


@program
def wide_depthwise_convolution(p):
    """25 elements of a window, all of which are loaded at once."""
    x = p.laid_out((16, 192, 28, 28), (150528, 1, 5376, 192))
    y = p.call("convolution", x, p.tensor(192, 1, 5, 5), None, [1, 1], [2, 2], [1, 1], False, [0, 0], 192)
    return [p.call("clone", y, memory_format=torch.channels_last)]


@program
def heads_to_rows(p):
    x = p.call("permute", p.tensor(16, 12, 512, 64), [0, 2, 1, 3])
    return [p.call("clone", x, memory_format=torch.contiguous_format)]


@program
def softmax(p):
    return [p.call("_softmax", p.tensor(16, 12, 512, 512), -1, False)]


@program
def softmax_of_odd_rows(p):
    return [p.call("_softmax", p.tensor(8191, 1023, dtype=SINGLE), -1, False)]


@program
def softmax_of_long_rows(p):
    return [p.call("_softmax", p.tensor(512, 50257, dtype=SINGLE), -1, False)]


@program
def causal_softmax(p):
    scores = p.call("mul.Tensor", p.tensor(8, 16, 1024, 1024), p.tensor())
    masked = p.call("where.self", p.tensor(1024, 1024, dtype=torch.bool), scores, p.tensor())
    return [p.call("_softmax", masked, -1, False)]


@program
def softmax_backward(p):
    grad, out = p.tensor(16, 12, 512, 512), p.tensor(16, 12, 512, 512)
    return [p.call("_softmax_backward_data", grad, out, -1, HALF)]


@program
def cross_entropy(p):
    logits, labels = p.tensor(4096, 32000, dtype=SINGLE), p.tensor(4096, dtype=torch.int64)
    loss, _ = p.call("nll_loss_forward", p.call("_log_softmax", logits, 1, False), labels, None, 1, -100)
    return [loss]


@program
def cross_entropy_backward(p):
    """With the gradient of the logits' conversion."""
    labels, total, grad = p.tensor(4096, dtype=torch.int64), p.tensor(dtype=SINGLE), p.tensor(dtype=SINGLE)
    output = p.tensor(4096, 32000, dtype=SINGLE)
    gradient = p.call("nll_loss_backward", grad, output, labels, None, 1, -100, total)
    return [p.call("_to_copy", p.call("_log_softmax_backward_data", gradient, output, 1, SINGLE), dtype=HALF)]


@program
def cross_entropy_of_halves(p):
    """As a training graph has it: what is saved of each row is written beside the loss."""
    logits, labels = p.tensor(4096, 32000), p.tensor(4096, dtype=torch.int64)
    wide = p.call("_to_copy", logits, dtype=SINGLE)
    maxima, sums = p.softmax_rows(wide)
    logarithms = p.call("log", sums)
    output = p.call("sub.Tensor", p.call("sub.Tensor", wide, maxima), logarithms)
    loss, total = p.call("nll_loss_forward", output, labels, None, 1, -100)
    return [loss, total, maxima, logarithms]


@program
def joined_logits(p):
    """What the caller gets is written once, in its own type, where the rows of the wider copy are read."""
    whole = p.call("cat", [p.tensor(2048, 50256), p.tensor(2048, 1)], 1)
    logits = p.call("view", whole, [16, 128, 50257])
    wide = p.call("view", p.call("_to_copy", logits, dtype=SINGLE), [2048, 50257])
    return [logits, *p.softmax_rows(wide)]


@program
def cross_entropy_backward_of_halves(p):
    """Its gradient: the result is computed again from the logits."""
    labels, total, grad = p.tensor(4096, dtype=torch.int64), p.tensor(dtype=SINGLE), p.tensor(dtype=SINGLE)
    logits, maxima, logarithms = p.tensor(4096, 32000), p.tensor(4096, 1, dtype=SINGLE), p.tensor(4096, 1, dtype=SINGLE)
    wide = p.call("_to_copy", logits, dtype=SINGLE)
    output = p.call("sub.Tensor", p.call("sub.Tensor", wide, maxima), logarithms)
    gradient = p.call("nll_loss_backward", grad, output, labels, None, 1, -100, total)
    return [p.call("_to_copy", p.call("_log_softmax_backward_data", gradient, output, 1, SINGLE), dtype=HALF)]


@program
def cross_entropy_backward_of_short_rows(p):
    """The row's loads do not wait for the check of its label."""
    labels, total, grad = p.tensor(4096, dtype=torch.int64), p.tensor(dtype=SINGLE), p.tensor(dtype=SINGLE)
    output = p.tensor(4096, 8192, dtype=SINGLE)
    gradient = p.call("nll_loss_backward", grad, output, labels, None, 1, -100, total)
    return [p.call("_to_copy", p.call("_log_softmax_backward_data", gradient, output, 1, SINGLE), dtype=HALF)]


@program
def add_layer_norm(p):
    x = p.call("add.Tensor", p.tensor(8192, 1024), p.tensor(8192, 1024))
    y, _, _ = p.call("native_layer_norm", x, [1024], p.tensor(1024), p.tensor(1024), 1e-5)
    return [x, y]


@program
def layer_norm_of_long_rows(p):
    y, _, _ = p.call("native_layer_norm", p.tensor(1024, 40000, dtype=SINGLE), [40000], p.tensor(40000, dtype=SINGLE), None, 1e-5)
    return [y]


@program
def layer_norm_backward(p):
    grad, x, w = p.tensor(8192, 1024, dtype=SINGLE), p.tensor(8192, 1024, dtype=SINGLE), p.tensor(1024, dtype=SINGLE)
    mean, rstd = p.tensor(8192, 1, dtype=SINGLE), p.tensor(8192, 1, dtype=SINGLE)
    normal = p.call("mul.Tensor", p.call("sub.Tensor", x, mean), rstd)
    scaled = p.call("mul.Tensor", grad, w)
    along = p.call("mean.dim", p.call("mul.Tensor", scaled, normal), [1], True)
    centred = p.call("sub.Tensor", p.call("sub.Tensor", scaled, p.call("mean.dim", scaled, [1], True)), p.call("mul.Tensor", normal, along))
    sums = [p.call("sum.dim_IntList", t, [0], False) for t in (p.call("mul.Tensor", grad, normal), grad)]
    return [p.call("mul.Tensor", centred, rstd), *sums]


@program
def layer_norm_backward_of_halves(p):
    """Of a vision transformer, with the gradient of the bias before it: 256 images of 197 patches."""
    grad, x, w = p.tensor(256, 197, 768), p.tensor(256, 197, 768), p.tensor(768, dtype=SINGLE)
    mean, rstd = p.tensor(256, 197, 1, dtype=SINGLE), p.tensor(256, 197, 1, dtype=SINGLE)
    wide = p.call("_to_copy", grad, dtype=SINGLE)
    grads = p.call("native_layer_norm_backward", wide, p.call("_to_copy", x, dtype=SINGLE), [768], mean, rstd, w, w, [True, True, True])
    narrow = p.call("_to_copy", grads[0], dtype=HALF)
    return [narrow, *grads[1:], p.call("sum.dim_IntList", p.call("view", narrow, [50432, 768]), [0], True)]


@program
def rms_norm_backward(p):
    grad, x, w = (p.call("_to_copy", t, dtype=SINGLE) for t in (p.tensor(8192, 4096), p.tensor(8192, 4096), p.tensor(4096)))
    up, square = p.call("mul.Tensor", grad, w), p.call("mul.Tensor", x, x)
    scale = p.call("rsqrt", p.call("add.Scalar", p.call("mean.dim", square, [-1], True), 1e-6))
    normal = p.call("mul.Tensor", x, scale)
    along = p.call("mean.dim", p.call("mul.Tensor", up, normal), [-1], True)
    inner = p.call("mul.Tensor", scale, p.call("sub.Tensor", up, p.call("mul.Tensor", normal, along)))
    weight = p.call("sum.dim_IntList", p.call("mul.Tensor", grad, normal), [0], False)
    return [p.call("_to_copy", t, dtype=HALF) for t in (inner, weight)]


@program
def fused_rms_norm(p):
    x, rstd = p.call("_fused_rms_norm", p.tensor(8192, 4096), [4096], p.tensor(4096), None)
    return [x, rstd]


@program
def fused_rms_norm_backward(p):
    grad, x, w, rstd = p.tensor(8192, 4096), p.tensor(8192, 4096), p.tensor(4096), p.tensor(8192, 1, dtype=SINGLE)
    return list(p.call("_fused_rms_norm_backward", grad, x, [4096], rstd, w, [True, True]))


@program
def rms_norm(p):
    x = p.call("_to_copy", p.tensor(8192, 4096), dtype=SINGLE)
    mean = p.call("mean.dim", p.call("pow.Tensor_Scalar", x, 2), [-1], True)
    scaled = p.call("mul.Tensor", x, p.call("rsqrt", p.call("add.Scalar", mean, 1e-6)))
    return [p.call("mul.Tensor", p.tensor(4096), p.call("_to_copy", scaled, dtype=HALF))]


@program
def group_norm_silu(p):
    y, _, _ = p.call("native_group_norm", p.tensor(8, 320, 64, 64), p.tensor(320), p.tensor(320), 8, 320, 4096, 32, 1e-5)
    return [p.call("silu", y)]


@program
def group_norm_of_channels_last(p):
    """Statistics of groups of 8 channels: rows of runs that are shorter than a line. The result is laid out as the other way."""
    x = p.call("clone", p.laid_out((256, 64, 32, 32), (65536, 1, 2048, 64)), memory_format=torch.contiguous_format)
    y, _, _ = p.call("native_group_norm", x, p.tensor(64), p.tensor(64), 256, 64, 1024, 8, 1e-5)
    return [p.call("silu", y)]


@program
def row_sum(p):
    return [p.call("sum.dim_IntList", p.tensor(16384, 1024), [1], False)]


@program
def group_norm_backward(p):
    grad, x, w = p.tensor(32, 64, 32, 32), p.tensor(32, 64, 32, 32), p.tensor(64)
    mean, rstd = p.tensor(32, 8), p.tensor(32, 8)
    return list(p.call("native_group_norm_backward", grad, x, mean, rstd, w, 32, 64, 1024, 8, [True, True, True]))


@program
def batch_norm_relu(p):
    c = [p.tensor(256, dtype=SINGLE) for _ in range(4)]
    y, _, _ = p.call("_native_batch_norm_legit_no_training", p.tensor(32, 256, 56, 56), *c, 0.1, 1e-5)
    return [p.call("relu", y)]


@program
def column_sum(p):
    return [p.call("sum.dim_IntList", p.tensor(8192, 1024), [0], False)]


@program
def column_sum_in_uneven_parts(p):
    """The gradient of a bias of a vision transformer: 256 images of 197 patches."""
    return [p.call("sum.dim_IntList", p.tensor(50432, 768), [0], False)]


@program
def whole_mean(p):
    return [p.call("mean", p.call("pow.Tensor_Scalar", p.tensor(8192, 4096, dtype=SINGLE), 2))]


@program
def short_rows(p):
    return [p.call("sum.dim_IntList", p.tensor(1000000, 12, dtype=SINGLE), [1], False)]


@program
def argmax(p):
    return [p.call("argmax", p.tensor(4096, 32000), 1, False)]


@program
def variance_of_columns(p):
    return list(p.call("var_mean.correction", p.tensor(8192, 1024, dtype=SINGLE), [0], correction=1, keepdim=False))


@program
def variance_in_uneven_parts(p):
    return list(p.call("var_mean.correction", p.tensor(50432, 768, dtype=SINGLE), [0], correction=1, keepdim=False))


@program
def cumsum_of_halves(p):
    return [p.call("cumsum", p.call("_to_copy", p.tensor(8192, 1024), dtype=SINGLE), -1)]


@program
def cumsum_of_long_rows(p):
    return [p.call("cumsum", p.tensor(512, 50257, dtype=SINGLE), -1)]


@program
def cumsum_of_columns(p):
    x = p.call("cumsum", p.tensor(64, 512, 1024, dtype=SINGLE), 1)
    return [p.call("mul.Tensor", x, p.tensor(1024, dtype=SINGLE))]


@program
def cumsum_backward(p):
    return [p.call("flip", p.call("cumsum", p.call("flip", p.tensor(8192, 1024), [1]), 1), [1])]


@program
def logcumsumexp(p):
    return [p.call("logcumsumexp", p.tensor(8192, 1024, dtype=SINGLE), -1)]


@program
def embedding(p):
    table, ids, positions = p.tensor(32000, 1024), p.tensor(16, 512, dtype=torch.int64), p.tensor(512, 1024)
    return [p.call("add.Tensor", p.call("embedding", table, ids), positions)]


@program
def embedding_backward(p):
    return [p.call("embedding_dense_backward", p.tensor(16, 512, 1024, dtype=SINGLE), p.tensor(16, 512, dtype=torch.int64), 32000, -1, False)]


@program
def rotary(p):
    x, cos, sin = p.laid_out((4, 32, 2048, 128), (8388608, 128, 4096, 1)), p.tensor(2048, 128), p.tensor(2048, 128)
    low, high = p.call("slice.Tensor", x, 3, 0, 64), p.call("slice.Tensor", x, 3, 64, 128)
    turned = p.call("cat", [p.call("neg", high), low], -1)
    return [p.call("add.Tensor", p.call("mul.Tensor", x, cos), p.call("mul.Tensor", turned, sin))]


@program
def joined(p):
    """Skipped connections: what is joined is chosen where it is read, and has no memory."""
    x = p.call("cat", [p.tensor(16, 128, 56, 56), p.tensor(16, 96, 56, 56)], 1)
    return [p.call("relu", p.call("mul.Tensor", x, p.tensor(224, 1, 1)))]


@program
def joined_rows(p):
    """Rows of an odd length, one type among others, and more tensors than an element chooses among."""
    rows = [p.tensor(64 + k, 767, dtype=SINGLE if k == 3 else HALF) for k in range(12)]
    return [p.call("cat", rows, 0)]


@program
def joined_reductions(p):
    x = p.tensor(32, 64, 56, 56)
    return [p.call("cat", [p.call("mean.dim", x, [1], True), p.call("amax", x, [1], True)], 1)]


@program
def padded(p):
    return [p.call("constant_pad_nd", p.tensor(64, 128, 56, 56), [1, 1, 1, 1], 0)]


@program
def masked_scale(p):
    scaled = p.call("mul.Scalar", p.call("mul.Tensor", p.tensor(8192, 4096), p.tensor(8192, 4096, dtype=torch.bool)), 1.25)
    return [scaled]


@program
def to_int8(p):
    x = p.call("div.Tensor", p.tensor(8192, 4096, dtype=SINGLE), p.tensor(8192, 1, dtype=SINGLE))
    return [p.call("_to_copy", p.call("clamp", p.call("round", x), -128, 127), dtype=torch.int8)]


@program
def adamw(p):
    w, g, m, v = (p.tensor(4096, 11008, dtype=SINGLE) for _ in range(4))
    m2 = p.call("add.Tensor", p.call("mul.Scalar", m, 0.9), p.call("mul.Scalar", g, 0.1))
    v2 = p.call("add.Tensor", p.call("mul.Scalar", v, 0.999), p.call("mul.Scalar", p.call("mul.Tensor", g, g), 0.001))
    step = p.call("div.Tensor", m2, p.call("add.Scalar", p.call("sqrt", v2), 1e-8))
    w2 = p.call("sub.Tensor", p.call("mul.Scalar", w, 0.99999), p.call("mul.Scalar", step, 1e-3))
    return [w2, m2, v2]


@program
def beyond_32_bits(p):
    return [p.call("relu", p.tensor(3, 1073741824))]


@program
def matmul_gelu(p):
    return [p.call("gelu", p.call("mm", p.tensor(4096, 1024), p.tensor(1024, 4096)))]


@program
def max_pool(p):
    x = p.laid_out((32, 64, 112, 112), (802816, 1, 7168, 64))
    return [p.call("max_pool2d_with_indices", x, [3, 3], [2, 2], [1, 1], [1, 1], False)[0]]


@program
def max_pool_backward(p):
    x = p.laid_out((32, 64, 112, 112), (802816, 1, 7168, 64))
    gradient = p.laid_out((32, 64, 56, 56), (200704, 1, 3584, 64))
    window = [3, 3], [2, 2], [1, 1], [1, 1], False
    y, indices = p.call("max_pool2d_with_indices", x, *window)
    return [y, p.call("max_pool2d_with_indices_backward", gradient, x, *window, indices)]


def linear(p, x, weight):
    return p.call("mm", x, p.call("permute", weight, [1, 0]))


def decoder_norm(p, x, scale):
    """The RMS norm as decoders of transformers write it."""
    wide = p.call("_to_copy", x, dtype=SINGLE)
    mean = p.call("mean.dim", p.call("pow.Tensor_Scalar", wide, 2), [-1], True)
    narrow = p.call("_to_copy", p.call("mul.Tensor", wide, p.call("rsqrt", p.call("add.Scalar", mean, 1e-5))), dtype=HALF)
    return p.call("mul.Tensor", scale, narrow)


@program
def one_token(p):
    """The feed-forward part of a decoder's layer."""
    x, scale = p.tensor(1, 2048), p.tensor(2048)
    norm = decoder_norm(p, x, scale)
    gate, up = (linear(p, norm, p.tensor(8192, 2048)) for _ in range(2))
    inner = p.call("mul.Tensor", p.call("silu", gate), up)
    return [p.call("add.Tensor", x, linear(p, inner, p.tensor(2048, 8192)))]


@program
def one_token_of_equal_sizes(p):
    """The norm is made by each program of the products that read it, also where these have as many results as elements."""
    x, scale = p.tensor(1, 512), p.tensor(512)
    norm = decoder_norm(p, x, scale)
    return [linear(p, norm, p.tensor(512, 512)), linear(p, norm, p.tensor(300, 512))]


@program
def norm_that_others_read(p):
    """A norm that is a result is made once."""
    x = p.tensor(1, 512)
    norm = p.call("native_layer_norm", x, [512], p.tensor(512), p.tensor(512), 1e-5)[0]
    return [norm, linear(p, norm, p.tensor(512, 512))]


@program
def saved_conversions(p):
    """Weights in half precision that are kept are converted together, those that are needed for a while one by one."""
    x, kept = p.tensor(2048, 768), []
    for saves in (True, True, True, False, False):
        weight = p.call("_to_copy", p.tensor(768, 768, dtype=SINGLE), dtype=HALF)
        x = p.call("mm", x, weight)
        kept += [weight] if saves else []
    return [x, *kept]


if __name__ == "__main__":
    for name, function in PROGRAMS.items():
        writer = Writer()
        file = FOLDER / f"{name}.txt"
        graph = writer.graph(function(writer))
        if not file.exists() or file.read_text().partition("----\n")[0] != graph:
            file.write_text(graph + "----\n")
