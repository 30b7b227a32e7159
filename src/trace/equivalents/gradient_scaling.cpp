// What a GradScaler calls: operators that write to lists of tensors, or to two of them, recorded as what they
// compute.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "base/error.h"
#include "trace/equivalents/equivalents.h"
#include "trace/tensors/dispatch_key.h"

namespace oxy::trace {

namespace {

bool is_traced(const at::Tensor& tensor) {
  return tensor.key_set().has(kTraceKey);
}

bool is_float_number(const at::Tensor& tensor, c10::Device device) {
  return tensor.scalar_type() == at::kFloat && tensor.device() == device && tensor.sym_numel() == 1;
}

// Half precision is multiplied in float32: the factor may be too small for it.
at::Tensor scaled(const at::Tensor& gradient, const at::Tensor& factor) {
  const at::Tensor number = factor.reshape({});
  if (gradient.scalar_type() == at::kDouble) return gradient * number.to(at::kDouble);
  return (gradient.to(at::kFloat) * number).to(gradient.scalar_type());
}

// gradients *= inverse_scale; found_inf = 1 if one of them is not finite, or else it stays.
void unscale_gradients(at::TensorList gradients, at::Tensor& found_inf, const at::Tensor& inverse_scale) {
  if (!std::ranges::any_of(gradients, is_traced) && !is_traced(found_inf) && !is_traced(inverse_scale)) {
    const c10::impl::ExcludeDispatchKeyGuard below(kTraceKeySet);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inverse_scale);
    return;
  }
  const auto fits = [&](const at::Tensor& gradient) {
    return at::isFloatingType(gradient.scalar_type()) && gradient.device() == found_inf.device();
  };
  if (!is_float_number(found_inf, found_inf.device()) ||
      !is_float_number(inverse_scale, found_inf.device()) || !std::ranges::all_of(gradients, fits))
    throw Unsupported("gradients to unscale that are not floating, or on another device than the scale");
  for (const at::Tensor& gradient : gradients) {
    found_inf.copy_(at::where(at::isfinite(gradient).all(), found_inf, 1.0));
    gradient.copy_(scaled(gradient, inverse_scale));
  }
}

// One step of a scale: smaller if an overflow was found, larger after so many steps without one.
at::Tensor& update_scale(at::Tensor& scale, at::Tensor& growth_tracker, const at::Tensor& found_inf,
                         double growth, double backoff, int64_t interval) {
  if (!is_traced(scale) && !is_traced(growth_tracker) && !is_traced(found_inf)) {
    const c10::impl::ExcludeDispatchKeyGuard below(kTraceKeySet);
    return at::_amp_update_scale_(scale, growth_tracker, found_inf, growth, backoff, interval);
  }
  if (!is_float_number(scale, scale.device()) || !is_float_number(found_inf, scale.device()) ||
      growth_tracker.scalar_type() != at::kInt || growth_tracker.sym_numel() != 1 ||
      growth_tracker.device() != scale.device())
    throw Unsupported("a scale of gradients that is no number of float32, or on another device");
  const auto times = [&](double factor) { return (scale.to(at::kDouble) * factor).to(at::kFloat); };
  const at::Tensor overflowed = found_inf.reshape_as(scale) != 0;
  const at::Tensor steps = growth_tracker + 1;
  const at::Tensor is_due = steps == interval;
  const at::Tensor grown = times(growth);
  const at::Tensor larger = at::where(at::isfinite(grown), grown, scale);
  const at::Tensor without_overflow = at::where(is_due.reshape_as(scale), larger, scale);
  const at::Tensor restarts = at::logical_or(overflowed.reshape_as(growth_tracker), is_due);
  scale.copy_(at::where(overflowed, times(backoff), without_overflow));
  growth_tracker.copy_(at::where(restarts, 0, steps));
  return scale;
}

}  // namespace

void add_gradient_scaling(torch::Library& library) {
  library.impl("_amp_foreach_non_finite_check_and_unscale_", &unscale_gradients);
  library.impl("_amp_update_scale_", &update_scale);
}

}  // namespace oxy::trace
