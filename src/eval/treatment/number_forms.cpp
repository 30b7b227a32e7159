#include "eval/treatment/number_forms.h"

#include <algorithm>
#include <array>

#include "eval/python/objects.h"

namespace oxy::eval {

// Where PyTorch's formula for a gradient differs at a border from that of an obvious form, the form has the
// same gradient as PyTorch's. Exponents are bounded, so that no gradient is the product of zero and infinity.
const char* const kNumberForms = R"(
import math
import torch

def element(number, tensor):
    raise NotImplementedError

def number(value):
    raise NotImplementedError

def written(input, result, inplace):
    return input.copy_(result) if inplace else result

def widened(input):
    return input.float() if input.dtype in (torch.float16, torch.bfloat16) else input

def leaky_relu(input, negative_slope=0.01, inplace=False):
    return written(input, torch.where(input > 0, input, input * negative_slope), inplace)

def elu(input, alpha=1.0, inplace=False):
    wide = widened(input)
    negative = torch.expm1(wide.clamp(max=0)) * alpha
    return written(input, torch.where(wide > 0, wide, negative).to(input.dtype), inplace)

def celu(input, alpha=1.0, inplace=False):
    if alpha == 0:
        alpha = number(alpha)
    wide = widened(input)
    negative = torch.expm1(wide.clamp(max=0) * (1.0 / alpha)) * alpha
    return written(input, torch.where(wide > 0, wide, negative).to(input.dtype), inplace)

def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    if min_val > max_val:
        return torch.nn.functional.hardtanh(input, number(min_val), number(max_val), inplace)
    low, high = element(min_val, input), element(max_val, input)
    is_outside = (input <= low) | (input >= high)
    return written(input, torch.where(is_outside, torch.clamp(input.detach(), low, high), input), inplace)

def threshold(input, threshold, value, inplace=False):
    is_below = input <= element(threshold, input)
    return written(input, torch.where(is_below, element(value, input), input), inplace)

def softplus(input, beta=1.0, threshold=20.0):
    wide = widened(input)
    scaled = wide * beta
    is_linear = scaled > threshold
    curve = torch.log1p(torch.exp(torch.where(is_linear, 0.0, scaled))) / beta
    return torch.where(is_linear, wide, curve).to(input.dtype)

def hardshrink(input, lambd=0.5):
    bound = element(lambd, input)
    return input.masked_fill((input >= -bound) & (input <= bound), 0)

def softshrink(input, lambd=0.5):
    if lambd < 0:
        lambd = number(lambd)
        return torch.nn.functional.softshrink(input, lambd)
    bound = element(lambd, input)
    moved = torch.where(input > bound, input - lambd, input + lambd)
    return torch.where((input >= -bound) & (input <= bound), input * 0, moved)

def reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss

def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    if weight is not None or delta <= 0 or reduction not in ("none", "mean", "sum") or input.shape != target.shape:
        return torch.nn.functional.huber_loss(input, target, reduction, number(delta), weight)
    distance = (input - target).abs()
    loss = torch.where(distance <= delta, 0.5 * distance * distance, (distance - 0.5 * delta) * delta)
    return reduced(loss, reduction)

def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    is_usual = size_average is None and reduce is None and reduction in ("none", "mean", "sum")
    if not is_usual or beta <= 0 or input.shape != target.shape:
        return torch.nn.functional.smooth_l1_loss(input, target, size_average, reduce, reduction, number(beta))
    distance = (input - target).abs()
    loss = torch.where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)
    return reduced(loss, reduction)

def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    if out is not None:
        return torch.nn.functional.normalize(input, number(p), dim, number(eps), out)
    return input / input.norm(number(p), dim, keepdim=True).clamp_min(eps).expand_as(input)

def pad(input, pad, mode="constant", value=None):
    if mode != "constant" or value is None:
        return torch.nn.functional.pad(input, pad, mode, number(value))
    is_inside = torch.nn.functional.pad(torch.ones_like(input, dtype=torch.bool), pad)
    return torch.where(is_inside, torch.nn.functional.pad(input, pad), element(value, input))

def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    attend = torch.nn.functional.scaled_dot_product_attention
    dropout_p = number(dropout_p)
    if scale is None or abs(scale * math.sqrt(query.size(-1)) - 1) < 1e-12:
        return attend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa=enable_gqa)
    if query.dtype not in (torch.float32, torch.float64):
        return attend(query, key, value, attn_mask, dropout_p, is_causal, scale=number(scale), enable_gqa=enable_gqa)
    return attend(query * scale, key, value, attn_mask, dropout_p, is_causal, scale=1.0, enable_gqa=enable_gqa)

def filled(tensor, value):
    return tensor.fill_(value if tensor.is_floating_point() else number(value))

def full(size, fill_value, *, dtype=None, layout=torch.strided, device=None, pin_memory=False):
    dtype = torch.get_default_dtype() if dtype is None else dtype
    return filled(torch.empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory), fill_value)

def full_like(input, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False,
              memory_format=torch.preserve_format):
    return filled(torch.empty_like(input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                                   memory_format=memory_format), fill_value)

def new_full(self, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False):
    return filled(self.new_empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory), fill_value)

def arange(start, end=None, step=1, /, *, dtype=None, layout=torch.strided, device=None, pin_memory=False):
    if end is None:
        start, end = 0, start
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point or step == 0:
        return torch.arange(number(start), number(end), number(step), dtype=dtype, layout=layout, device=device,
                            pin_memory=pin_memory)
    count = math.ceil((end - start) / step)
    index = torch.arange(count, dtype=torch.float64, layout=layout, device=device, pin_memory=pin_memory)
    return (index * step + start).to(dtype)

def where(condition, input, other):
    if isinstance(input, torch.Tensor):
        return torch.where(condition, input, element(other, input))
    if isinstance(other, torch.Tensor):
        return torch.where(condition, element(input, other), other)
    like = torch.empty((), dtype=torch.get_default_dtype(), device=condition.device)
    return torch.where(condition, element(input, like), element(other, like))

def where_of_self(self, condition, other):
    return torch.where(condition, self, element(other, self))

def index_fill(input, dim, index, value):
    return input.index_fill(dim, index, element(value, input))

def scatter(input, dim, index, src=None, *, value=None):
    value = element(src if value is None else value, input)
    if not isinstance(value, torch.Tensor):
        return input.scatter(dim, index, value)
    return input.scatter(dim, index, value.expand(index.shape))

def nan_to_num(input, nan=None, posinf=None, neginf=None):
    limits = torch.finfo(input.dtype)
    nan = element(0.0 if nan is None else nan, input)
    high = element(limits.max if posinf is None else posinf, input)
    low = element(limits.min if neginf is None else neginf, input)
    known = torch.where(input.isnan(), nan, input)
    return torch.where(input == math.inf, high, torch.where(input == -math.inf, low, known))

def pow(input, exponent):
    return input ** exponent

def float_power(input, exponent):
    return input.double() ** exponent

def remainder(input, other):
    return input % other

def rsub(input, other, *, alpha=1):
    return other - input * alpha

def lerp(input, end, weight):
    return torch.lerp(input.float(), end.float(), weight).to(input.dtype)

def combined(input, product, beta, alpha):
    product = product * alpha
    return product if beta == 0 else product + input * beta

def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return combined(input, mat1.mm(mat2), beta, alpha)

def addmv(input, mat, vec, *, beta=1, alpha=1):
    return combined(input, mat.mv(vec), beta, alpha)

def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return combined(input, batch1.bmm(batch2), beta, alpha)
)";

namespace {

constexpr const char* kFunctional = "torch.nn.functional";
constexpr const char* kMethod = "";

constexpr NumberForm kForms[] = {
    {kFunctional, "leaky_relu", "leaky_relu", NumberTypes::Floating},
    {kFunctional, "elu", "elu", NumberTypes::Floating},
    {kFunctional, "celu", "celu", NumberTypes::Floating, true},
    {"torch", "celu", "celu", NumberTypes::Floating, true},
    {kFunctional, "hardtanh", "hardtanh", NumberTypes::Floating},
    {kFunctional, "threshold", "threshold", NumberTypes::Floating},
    {"torch", "threshold", "threshold", NumberTypes::Floating},
    {kFunctional, "softplus", "softplus", NumberTypes::Floating},
    {kFunctional, "hardshrink", "hardshrink", NumberTypes::Floating},
    {"torch", "hardshrink", "hardshrink", NumberTypes::Floating},
    {kMethod, "hardshrink", "hardshrink", NumberTypes::Floating},
    {kFunctional, "softshrink", "softshrink", NumberTypes::Floating, true},
    {kFunctional, "huber_loss", "huber_loss", NumberTypes::Wide, true},
    {kFunctional, "smooth_l1_loss", "smooth_l1_loss", NumberTypes::Wide, true},
    {kFunctional, "normalize", "normalize", NumberTypes::Wide},
    {kFunctional, "pad", "pad", NumberTypes::Floating, true},
    {kFunctional, "scaled_dot_product_attention", "scaled_dot_product_attention", NumberTypes::Floating},
    {"torch", "full", "full", NumberTypes::All},
    {"torch", "full_like", "full_like", NumberTypes::All},
    {kMethod, "new_full", "new_full", NumberTypes::All},
    {"torch", "arange", "arange", NumberTypes::All},
    {"torch", "where", "where", NumberTypes::All},
    {kMethod, "where", "where_of_self", NumberTypes::Floating},
    {"torch", "index_fill", "index_fill", NumberTypes::Floating},
    {kMethod, "index_fill", "index_fill", NumberTypes::Floating},
    {"torch", "scatter", "scatter", NumberTypes::Floating},
    {kMethod, "scatter", "scatter", NumberTypes::Floating},
    {"torch", "nan_to_num", "nan_to_num", NumberTypes::Floating, true},
    {kMethod, "nan_to_num", "nan_to_num", NumberTypes::Floating, true},
    {"torch", "pow", "pow", NumberTypes::Narrow},
    {kMethod, "pow", "pow", NumberTypes::Narrow},
    {"torch", "float_power", "float_power", NumberTypes::Floating, true},
    {kMethod, "float_power", "float_power", NumberTypes::Floating, true},
    {"torch", "remainder", "remainder", NumberTypes::Narrow},
    {kMethod, "remainder", "remainder", NumberTypes::Narrow},
    {"torch", "rsub", "rsub", NumberTypes::Wide},
    {"torch", "lerp", "lerp", NumberTypes::Narrow},
    {kMethod, "lerp", "lerp", NumberTypes::Narrow},
    {"torch", "addmm", "addmm", NumberTypes::Wide},
    {kMethod, "addmm", "addmm", NumberTypes::Wide},
    {"torch", "addmv", "addmv", NumberTypes::Wide},
    {kMethod, "addmv", "addmv", NumberTypes::Wide},
    {"torch", "baddbmm", "baddbmm", NumberTypes::Wide},
    {kMethod, "baddbmm", "baddbmm", NumberTypes::Wide},
};

}  // namespace

const NumberForm* number_form(PyObject* callable, std::string_view method) {
  const bool is_method = !method.empty();
  if (is_method && method.ends_with('_') && !method.ends_with("__")) method.remove_suffix(1);
  const auto is_it = [&](const NumberForm& form) {
    const bool of_method = std::string_view(form.module).empty();
    return is_method ? of_method && method == form.name
                     : !of_method && callable == well_known(form.module, form.name);
  };
  const auto* const found = std::ranges::find_if(kForms, is_it);
  return found == std::end(kForms) ? nullptr : found;
}

}  // namespace oxy::eval
