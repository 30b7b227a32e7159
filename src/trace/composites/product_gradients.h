// Products of elements whose gradients ask nothing of data. PyTorch's formulas ask whether an element is zero,
// and how many are, which no graph can answer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace oxy::trace {

// self.prod(dim, keepdim), or self.prod() without a `dim`, and self.cumprod(dim). Gradients of a gradient
// cannot be recorded (CannotTrace). Precondition: a trace tensor of real floating-point numbers that requires
// grad, grad mode is on, and `dim` is one of its dimensions.
at::Tensor product(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim);
at::Tensor cumulative_product(const at::Tensor& self, int64_t dim);

}  // namespace oxy::trace
