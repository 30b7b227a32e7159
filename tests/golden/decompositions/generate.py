"""Writes cases.txt: calls that decompose into simpler operators, with eager PyTorch's answers.

One case is a graph of one node, its inputs and the results, element by element in logical order.
"""

import collections
import pathlib
import sys
import zlib

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "shapes"))
from generate import SOME_GRADIENTS, Writer, meta_text  # noqa: E402

torch.manual_seed(0)
OUT = []


def numbers(t):
    return " ".join(str(int(v)) if not t.dtype.is_floating_point else repr(float(v)) for v in t.flatten())


def case(name, *args, results=None, **kwargs):
    """`results`: the answer, where this machine has no kernel that gives it."""
    writer = Writer()
    writer.call(name, *args, results=results, **kwargs)
    if not writer.lines:
        raise SystemExit(f"{name}: {writer.refused}")
    flat = [a for arg in [*args, *kwargs.values()] for a in (arg if isinstance(arg, list) else [arg])]
    inputs = [a for a in flat if isinstance(a, torch.Tensor)]
    base, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, base), overload or "default")
    result = op(*args, **kwargs) if results is None else results
    listed = [result] if isinstance(result, torch.Tensor) else list(result)
    answers = [t for t in listed if t is not None]
    line = writer.lines[0][1]
    # Equal metadata would make one input of two tensors: number them one by one.
    for i, t in enumerate(inputs):
        line = line.replace(f"<{meta_text(t)}>", f"%{i}", 1)
    header = ", ".join(f"%{i} : {meta_text(t)}" for i, t in enumerate(inputs))
    numbers_of = {id(t): len(inputs) + i for i, t in enumerate(answers)}
    defines = ", ".join("_" if t is None else f"%{numbers_of[id(t)]} : {meta_text(t)}" for t in listed)
    returned = ", ".join(f"%{len(inputs) + i}" for i in range(len(answers)))
    OUT.append(f"graph({header}) {{\n  {defines} = {line}\n  return {returned}\n}}")
    OUT.extend(f"input {numbers(t)}" for t in inputs)
    OUT.extend(f"result {numbers(t)}" for t in answers)
    OUT.append("end")


def generator(size, made=collections.Counter()):
    """By the size, and how many of that size there were: a new case leaves most others as they are."""
    made[size] += 1
    return torch.Generator().manual_seed(zlib.crc32(f"{size} {made[size]}".encode()))


def x(*size):
    return torch.randn(size, generator=generator(size))


def p(*size):
    return torch.rand(size, generator=generator(size))


for reduction in (0, 1, 2):
    case("smooth_l1_loss", x(3, 4), x(3, 4), reduction, 0.7)
    case("smooth_l1_loss", x(3, 4), x(3, 4), reduction, 0.0)
    case("huber_loss", x(3, 4), x(3, 4), reduction, 0.7)
    case("binary_cross_entropy_with_logits", x(3, 4), p(3, 4), None, None, reduction)
    case("binary_cross_entropy_with_logits", x(3, 4), p(3, 4), p(3, 4), p(4), reduction)
    case("soft_margin_loss", x(3, 4), x(3, 4).sign(), reduction)
    gradient = x(3, 4) if reduction == 0 else x()
    case("mse_loss_backward", gradient, x(3, 4), x(3, 4), reduction)
    logits, target = x(5, 4), torch.tensor([0, 3, -100, 2, 1])
    for weight in (None, p(4)):
        _, total = torch.ops.aten.nll_loss_forward(logits, target, weight, reduction, -100)
        gradient = x(5) if reduction == 0 else x()
        case("nll_loss_backward", gradient, logits, target, weight, reduction, -100, total)
case("_softmax_backward_data", x(2, 3, 4), p(2, 3, 4), -1, torch.float32)
case("_softmax_backward_data", x(2, 3, 4), p(2, 3, 4), 1, torch.float32)
case("_log_softmax_backward_data", x(2, 5), x(2, 5).log_softmax(1), 1, torch.float32)
rows, weight, bias = x(2, 3, 6), x(6), x(6)
_, mean, rstd = torch.native_layer_norm(rows, [6], weight, bias, 1e-5)
case("native_layer_norm_backward", x(2, 3, 6), rows, [6], mean, rstd, weight, bias, [True, True, True])
for mask in SOME_GRADIENTS:
    case("native_layer_norm_backward", x(2, 3, 6), rows, [6], mean, rstd, weight, bias, mask)
case("native_layer_norm_backward", x(2, 3, 6), rows, [6], mean, rstd, None, None, [True, False, False])
case("native_layer_norm_backward", x(2, 3, 6), rows, [6], mean, rstd, weight, None, [True, True, False])
batch, moving, invstd = x(4, 3, 5), x(3), p(3) + 0.5
for mask in [[True] * 3, *SOME_GRADIENTS]:
    case("native_batch_norm_backward", x(4, 3, 5), batch, p(3), None, None, moving, invstd, True, 1e-5, mask)
batch, per_channel = x(2, 6, 2, 3), x(6)
_, mean, rstd = torch.native_group_norm(batch, per_channel, None, 2, 6, 6, 2, 1e-5)
for mask in [[True] * 3, *SOME_GRADIENTS]:
    case("native_group_norm_backward", x(2, 6, 2, 3), batch, mean, rstd, per_channel, 2, 6, 6, 2, mask)
case("native_group_norm_backward", x(2, 6, 2, 3), batch, mean, rstd, None, 2, 6, 6, 2, [True, False, False])
case("native_group_norm_backward", x(2, 6, 2, 3).double(), batch.double(), mean.double(), rstd.double(), per_channel.double(), 2, 6, 6, 2, [True] * 3)
flat = x(4, 6)
_, mean, rstd = torch.native_group_norm(flat, per_channel, None, 4, 6, 1, 2, 1e-5)
case("native_group_norm_backward", x(4, 6), flat, mean, rstd, per_channel, 4, 6, 1, 2, [True] * 3)


def rms_norm_backward(batch, inner, given, mask):
    """Of a kernel for GPUs alone: the answer is the formula's gradient in double precision."""
    gradient = x(*batch.shape).to(batch.dtype)
    wide, factors = (t.to(torch.float64, copy=True).requires_grad_() for t in (batch, torch.ones(inner) if given is None else given))
    rstd = (wide.square().mean(list(range(-len(inner), 0)), keepdim=True) + 1e-6).rsqrt()
    answers = torch.autograd.grad(wide * rstd * factors, (wide, factors), gradient.double())
    saved = rstd.detach().to(torch.float64 if batch.dtype == torch.float64 else torch.float32)
    results = tuple(answer.to(batch.dtype) if there else None for answer, there in zip(answers, mask))
    case("_fused_rms_norm_backward", gradient, batch, inner, saved, given, mask, results=results)


for mask in ([True, True], [True, False], [False, True]):
    rms_norm_backward(rows, [6], weight, mask)
rms_norm_backward(rows, [6], None, [True, False])
rms_norm_backward(rows, [3, 6], x(3, 6), [True, True])
rms_norm_backward(rows, [2, 3, 6], x(2, 3, 6), [True, True])
rms_norm_backward(rows.bfloat16(), [6], weight.bfloat16(), [True, True])
rms_norm_backward(rows.double(), [6], weight.double(), [True, True])
case("leaky_relu_backward", x(3, 4), x(3, 4), 0.1, False)
special = torch.tensor([1.0, float("inf"), float("-inf"), float("nan"), 0.0, -2.0])
case("isposinf", special)
case("isneginf", special)
holes = torch.where(p(3, 4) > 0.7, torch.tensor(float("nan")), x(3, 4))
case("nansum", holes)
case("nansum", holes, [1], True)
case("aminmax", x(3, 4))
case("aminmax", x(3, 4), dim=1, keepdim=True)
case("count_nonzero", x(3, 4).relu())
case("count_nonzero.dim_IntList", x(3, 4).relu(), [0])
case("norm.Scalar", x(3, 4), 2)
case("norm.ScalarOpt_dim", x(3, 4), 1, [1], True)
case("norm.ScalarOpt_dim", x(3, 4), None, [0], False)
case("addr", x(3, 4), x(3), x(4), beta=2.0, alpha=0.5)
case("addr", x(3, 4), x(3), x(4))
case("linalg_cross", x(4, 3), x(4, 3))
case("linalg_cross", x(3, 1, 2), x(3, 4, 1).transpose(0, 1).contiguous().transpose(0, 1), dim=0)
case("pixel_shuffle", x(2, 8, 2, 3), 2)
case("pixel_shuffle", x(9, 2, 1), 3)
case("pixel_unshuffle", x(2, 2, 4, 6), 2)
case("slice_backward", x(2, 2, 3), [2, 5, 3], 1, 1, 4, 2)
case("select_backward", x(2, 3), [2, 5, 3], 1, 2)
case("isin.Tensor_Scalar", torch.tensor([1, 2, 3, 2]), 2)
case("isin.Tensor_Scalar", torch.tensor([1, 2, 3, 2]), 2, invert=True)
case("_index_put_impl", x(4, 3), [torch.tensor([1, 3])], x(2, 3), False, False)
case("native_dropout", x(3, 4), 0.5, False)

case("ldexp.Tensor", x(3, 4), torch.tensor([1, -2, 0, 3]))
case("ldexp.Tensor", x(3, 4), x(3, 1))
case("dist", x(3, 4), x(3, 4), 2)
case("dist", x(3, 4), x(4), 1)

(pathlib.Path(__file__).parent / "cases.txt").write_text("\n".join(OUT) + "\n")
print(f"{OUT.count('end')} cases")
