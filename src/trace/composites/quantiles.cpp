// Quantiles: PyTorch's decomposition reads on the host whether q lies between 0 and 1, which is known of a
// number.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <string>
#include <vector>

#include "trace/composites/composites.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

constexpr size_t kArguments = 5;  // (self, q, dim, keepdim, interpolation)

// The elements at `ranks` of sorted rows, and what lies between two of them. `ranks`: of the sorted type,
// with one column.
at::Tensor elements_at(const at::Tensor& sorted, at::Tensor ranks, const std::string& interpolation) {
  if (interpolation == "lower") ranks = ranks.floor();
  if (interpolation == "higher") ranks = ranks.ceil();
  if (interpolation == "nearest") ranks = ranks.round();
  const at::Tensor before = ranks.to(at::kLong);
  at::Tensor below = sorted.gather(-1, before);
  const bool is_midpoint = interpolation == "midpoint";
  if (!is_midpoint && interpolation != "linear") return below;
  const at::Tensor above = sorted.gather(-1, ranks.ceil().to(at::kLong));
  return is_midpoint ? at::lerp(below, above, 0.5) : at::lerp(below, above, ranks - before);
}

template <bool skips_nan>
void quantile(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto argument = [&](size_t i) -> const c10::IValue& {
    return torch::jit::peek(*stack, i, kArguments);
  };
  const at::Tensor self = argument(0).toTensor();
  const double q = argument(1).toDouble();
  const bool keeps = argument(3).toBool();
  const std::string interpolation = argument(4).toStringRef();
  const bool is_known = interpolation == "linear" || interpolation == "lower" || interpolation == "higher" ||
                        interpolation == "midpoint" || interpolation == "nearest";
  const bool fits = self.scalar_type() == at::kFloat || self.scalar_type() == at::kDouble;
  // What it refuses, PyTorch's decomposition refuses in its own words.
  if (trace_tensor(self) == nullptr || !fits || !is_known || !(q >= 0 && q <= 1) || self.dim() == 0 ||
      !self.sym_numel().sym_gt(0).guard_bool(__FILE__, __LINE__))
    return decompose(op, self.device(), stack);
  const bool has_dimension = !argument(2).isNone();
  const int64_t dimension = has_dimension ? c10::maybe_wrap_dim(argument(2).toInt(), self.dim()) : 0;
  const at::Tensor rows = has_dimension ? self.movedim(dimension, -1) : self.flatten();
  const at::Tensor sorted = std::get<0>(rows.sort(-1));
  const at::Tensor share = at::scalar_tensor(q, self.options());
  const at::Tensor is_nan = at::isnan(sorted);  // they come last
  at::Tensor ranks;
  if (skips_nan) {
    const at::Tensor count = is_nan.logical_not().sum(-1, /*keepdim=*/true);
    ranks = (share * (count - 1)).clamp_min(0);
  } else {
    const at::Tensor last =
        at::scalar_tensor(c10::Scalar(rows.sym_size(-1) - 1), self.options().dtype(at::kLong));
    ranks = at::where(is_nan.any(-1, /*keepdim=*/true), last.to(self.scalar_type()), share * last);
  }
  at::Tensor result = elements_at(sorted, ranks, interpolation).squeeze(-1);
  if (keeps && has_dimension) result = result.unsqueeze(dimension);
  if (keeps && !has_dimension)
    result = result.reshape(std::vector<int64_t>(static_cast<size_t>(self.dim()), 1));
  torch::jit::drop(*stack, kArguments);
  stack->emplace_back(result);
}

}  // namespace

void add_quantiles(torch::Library& library) {
  library.impl("quantile.scalar", torch::CppFunction::makeFromBoxedFunction<&quantile<false>>());
  library.impl("nanquantile.scalar", torch::CppFunction::makeFromBoxedFunction<&quantile<true>>());
}

}  // namespace oxy::trace
