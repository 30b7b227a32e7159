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

# An operand in place of `input`, which is written to at the end: what gradients read of it has to stay.
def operand(input, inplace):
    return input.clone() if inplace else input

def written(input, result, inplace):
    return input.copy_(result) if inplace else result

# Zero, or NaN for NaN. PyTorch's formula for the gradient of `result` reads the input, so that the gradient
# has a gradient itself, which is zero.
def with_second_gradient(result, input):
    return result + torch.threshold(input, math.inf, 0.0) if input.requires_grad else result

def widened(input):
    return input.float() if input.dtype in (torch.float16, torch.bfloat16) else input

def leaky_relu(input, negative_slope=0.01, inplace=False):
    if inplace and negative_slope < 0:
        return torch.nn.functional.leaky_relu(input, number(negative_slope), inplace)
    x = operand(input, inplace)
    return written(input, with_second_gradient(torch.where(x > 0, x, x * negative_slope), x), inplace)

def leaky_relu_(input, negative_slope=0.01):
    return leaky_relu(input, negative_slope, True)

# exp(scaled) - 1 where x is negative. At x = 0 it is a line: the second gradient of PyTorch's formula is zero.
def exponential(x, scaled):
    return torch.where(x < 0, torch.expm1(torch.where(x < 0, scaled, 0.0)), scaled)

def elu(input, alpha=1.0, inplace=False):
    if inplace and alpha < 0:
        return torch.nn.functional.elu(input, number(alpha), inplace)
    x = widened(operand(input, inplace))
    negative = exponential(x, x) * alpha
    return written(input, torch.where(x <= 0, negative, x).to(input.dtype), inplace)

def elu_(input, alpha=1.0):
    return elu(input, alpha, True)

def celu(input, alpha=1.0, inplace=False):
    if alpha == 0 or (inplace and alpha < 0):
        return torch.nn.functional.celu(input, number(alpha), inplace)
    x = widened(operand(input, inplace))
    negative = exponential(x, x * (1.0 / alpha)) * alpha
    return written(input, torch.where(x <= 0, negative, x).to(input.dtype), inplace)

def celu_(input, alpha=1.0):
    return celu(input, alpha, True)

def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    if min_val > max_val:
        return torch.nn.functional.hardtanh(input, number(min_val), number(max_val), inplace)
    x = operand(input, inplace)
    low, high = element(min_val, x), element(max_val, x)
    is_outside = (x <= low) | (x >= high)
    result = torch.where(is_outside, torch.clamp(x.detach(), low, high), x)
    return written(input, with_second_gradient(result, x), inplace)

def hardtanh_(input, min_val=-1.0, max_val=1.0):
    return hardtanh(input, min_val, max_val, True)

def thresholded(input, threshold, value, inplace=False):
    x = operand(input, inplace)
    result = torch.where(x <= element(threshold, x), element(value, x), x)
    return written(input, with_second_gradient(result, x), inplace)

def thresholded_(input, threshold, value):
    return thresholded(input, threshold, value, True)

def softplus(input, beta=1.0, threshold=20.0):
    if beta == 0:
        return torch.nn.functional.softplus(input, number(beta), number(threshold))
    x = widened(input)
    scaled = x * beta
    is_linear = scaled > threshold
    curve = torch.log1p(torch.exp(torch.where(is_linear, 0.0, scaled))) / beta
    if input.requires_grad:
        # At the threshold it is a line: the second gradient of PyTorch's formula is zero.
        is_border = (scaled == threshold) & scaled.isfinite()
        place = torch.where(is_border, x, 0.0)
        line = curve.detach() + (place - place.detach()) * torch.sigmoid(scaled.detach())
        curve = torch.where(is_border, line, curve)
    return torch.where(is_linear, x, curve).to(input.dtype)

def hardshrink(input, lambd=0.5):
    bound = element(lambd, input)
    return with_second_gradient(torch.where((input >= -bound) & (input <= bound), 0.0, input), input)

def softshrink(input, lambd=0.5):
    if not lambd >= 0:
        return torch.nn.functional.softshrink(input, number(lambd))
    bound = element(lambd, input)
    moved = torch.where(input > bound, input - lambd, input + lambd)
    result = torch.where((input >= -bound) & (input <= bound), input * 0, moved)
    return with_second_gradient(result, input)

def reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss

def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    is_usual = weight is None and reduction in ("none", "mean", "sum") and input.dtype == target.dtype
    if not is_usual or not delta > 0 or input.shape != target.shape:
        return torch.nn.functional.huber_loss(input, target, reduction, number(delta), weight)
    distance = (input - target).abs()
    loss = torch.where(distance <= delta, 0.5 * distance * distance, (distance - 0.5 * delta) * delta)
    return reduced(loss, reduction)

def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    is_usual = size_average is None and reduce is None and reduction in ("none", "mean", "sum")
    if not is_usual or input.dtype != target.dtype or not beta > 0 or input.shape != target.shape:
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
    if query.dtype not in (torch.float32, torch.float64) or scale <= 0:
        return attend(query, key, value, attn_mask, dropout_p, is_causal, scale=number(scale), enable_gqa=enable_gqa)
    return attend(query * scale, key, value, attn_mask, dropout_p, is_causal, scale=1.0, enable_gqa=enable_gqa)

def filled(tensor, value):
    return tensor.fill_(value if tensor.is_floating_point() else number(value))

def full(size, fill_value, *, dtype=None, layout=torch.strided, device=None, pin_memory=False, requires_grad=False):
    dtype = torch.get_default_dtype() if dtype is None else dtype
    result = filled(torch.empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory), fill_value)
    return result.requires_grad_() if requires_grad else result

def full_like(input, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
              memory_format=torch.preserve_format):
    result = filled(torch.empty_like(input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                                     memory_format=memory_format), fill_value)
    return result.requires_grad_() if requires_grad else result

def new_full(self, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    result = filled(self.new_empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory), fill_value)
    return result.requires_grad_() if requires_grad else result

def arange(start=None, end=None, step=1, *, dtype=None, layout=torch.strided, device=None, pin_memory=False,
           requires_grad=False):
    if end is None:
        start, end = 0, start
    if start is None:
        start = 0
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point or requires_grad or step == 0 or (end - start) / step < 0:
        return torch.arange(number(start), number(end), number(step), dtype=dtype, layout=layout, device=device,
                            pin_memory=pin_memory, requires_grad=requires_grad)
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
    if not isinstance(input, torch.Tensor):
        return input ** exponent.double()
    return input.double() ** exponent

def remainder(input, other):
    return input % other

def rsub(input, other, *, alpha=1):
    return other - input * alpha

def lerp(input, end, weight):
    return torch.lerp(input.float(), end.float(), weight).to(input.dtype)

# With a beta of zero nothing is read of the input, but its gradient is zero, and not missing.
def combined(input, product, beta, alpha):
    product = product * alpha
    if beta != 0:
        return product + input * beta
    if not input.requires_grad:
        return product
    return product + torch.where(torch.ones_like(input, dtype=torch.bool), 0.0, input)

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
    {kFunctional, "leaky_relu_", "leaky_relu_", NumberTypes::Floating},
    {"torch._C._nn", "leaky_relu", "leaky_relu", NumberTypes::Floating},
    {kFunctional, "elu_", "elu_", NumberTypes::Floating},
    {"torch", "celu_", "celu_", NumberTypes::Floating, true},
    {kFunctional, "hardtanh_", "hardtanh_", NumberTypes::Floating},
    {"torch", "threshold_", "thresholded_", NumberTypes::Floating},
    {kFunctional, "elu", "elu", NumberTypes::Floating},
    {kFunctional, "celu", "celu", NumberTypes::Floating, true},
    {"torch", "celu", "celu", NumberTypes::Floating, true},
    {kFunctional, "hardtanh", "hardtanh", NumberTypes::Floating},
    {kFunctional, "threshold", "thresholded", NumberTypes::Floating},
    {"torch", "threshold", "thresholded", NumberTypes::Floating},
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
    {"torch", "pow", "pow", NumberTypes::Floating},
    {kMethod, "pow", "pow", NumberTypes::Floating},
    {"torch", "float_power", "float_power", NumberTypes::Floating, true},
    {kMethod, "float_power", "float_power", NumberTypes::Floating, true},
    {"torch", "remainder", "remainder", NumberTypes::Floating},
    {kMethod, "remainder", "remainder", NumberTypes::Floating},
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
