#include "eval/treatment/optimizer_forms.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval/python/objects.h"

namespace oxy::eval {

// As in eager's kernels, numbers are of float64 until they meet elements, elements of 16 bits are calculated
// with in float32, and each tensor is rounded when it is written.
const char* const kOptimizerForms = R"(
def rate(lr, param):
    return lr.reshape(()).to(param.device, torch.float64) if isinstance(lr, torch.Tensor) else lr

# Whether the step is left out, because a gradient is infinite; None: nobody asks.
def is_skipped(found_inf):
    return None if found_inf is None else found_inf.reshape(()) == 1

def replace(tensor, value, skipped):
    tensor.copy_(value if skipped is None else torch.where(skipped, tensor, value))

# The gradient that counts. The one without the scale is kept.
def unscaled(grad, grad_scale, maximize, skipped):
    result = widened(grad)
    if grad_scale is not None:
        result = result / grad_scale.reshape(())
        replace(grad, result, skipped)
    return -result if maximize else result

# For products with numbers, which eager's kernel rounds once: to float32.
def exact(tensor):
    return tensor.double() if tensor.dtype == torch.float32 else widened(tensor)

def bias_correction(beta, step):
    return 1 - beta ** step.reshape(()).double()

def fused_adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, *, lr, beta1, beta2, weight_decay, eps,
               amsgrad, maximize, grad_scale=None, found_inf=None, decoupled=False):
    skipped, lr, old = is_skipped(found_inf), rate(lr, param), widened(param)
    gradient = unscaled(grad, grad_scale, maximize, skipped)
    if weight_decay != 0:
        if decoupled:
            old = old - old * (lr * weight_decay)
        else:
            gradient = gradient + old * weight_decay
    mean = widened(exp_avg).lerp(gradient, 1 - beta1)
    square = widened(exp_avg_sq).lerp(gradient * gradient, 1 - beta2)
    largest = torch.maximum(widened(max_exp_avg_sq), square) if amsgrad else square
    divisor = largest.sqrt() / bias_correction(beta2, step).sqrt() + eps
    new = old - mean * (lr / bias_correction(beta1, step)) / divisor
    replace(param, new, skipped)
    replace(exp_avg, mean, skipped)
    replace(exp_avg_sq, square, skipped)
    if amsgrad:
        replace(max_exp_avg_sq, largest, skipped)

def fused_adamw(*arguments, **keywords):
    fused_adam(*arguments, **keywords, decoupled=True)

def fused_sgd(param, grad, buffer, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
              grad_scale=None, found_inf=None):
    skipped, lr, old = is_skipped(found_inf), rate(lr, param), exact(param)
    gradient = exact(unscaled(grad, grad_scale, maximize, skipped))
    if weight_decay != 0:
        gradient = gradient + old * weight_decay
    if buffer is not None:
        mean = gradient if is_first_step else exact(buffer) * momentum + gradient * (1 - dampening)
        replace(buffer, mean, skipped)
        gradient = gradient + mean * momentum if nesterov else mean
    replace(param, old - gradient * lr, skipped)

def fused_adagrad(param, grad, state_sum, step, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale=None,
                  found_inf=None):
    skipped, lr, old = is_skipped(found_inf), rate(lr, param), widened(param)
    gradient = unscaled(grad, grad_scale, maximize, skipped)
    if weight_decay != 0:
        gradient = gradient + old * weight_decay
    total = widened(state_sum) + gradient * gradient
    lr = lr / (1 + (step.reshape(()).double() - 1) * lr_decay)
    replace(param, old - gradient * lr / (total.sqrt() + eps), skipped)
    replace(state_sum, total, skipped)
)";

namespace {

constexpr FusedForm kForms[] = {
    {"_fused_adam_", "fused_adam", 6, 4, "amsgrad", 5},
    {"_fused_adamw_", "fused_adamw", 6, 4, "amsgrad", 5},
    {"_fused_sgd_", "fused_sgd", 3, 2, "momentum", kNoList},
    {"_fused_adagrad_", "fused_adagrad", 4, kNoList, "", 3},
};

}  // namespace

bool FusedForm::has_kernel(c10::Device device) const {
  const auto handle = c10::Dispatcher::singleton().findSchema({fmt::format("aten::{}", name), ""});
  const auto key = c10::computeDispatchKey(std::nullopt, c10::kStrided, device);
  return handle && handle->hasKernelForDispatchKey(key);
}

const FusedForm* fused_form(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return nullptr;
  const auto* const found = std::ranges::find_if(
      kForms, [&](const FusedForm& form) { return callable == well_known("torch", form.name); });
  return found == std::end(kForms) ? nullptr : found;
}

}  // namespace oxy::eval
