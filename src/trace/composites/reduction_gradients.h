// Reductions whose gradients ask nothing of data. PyTorch's formulas read on the host whether an element is
// zero, how many are, or whether the result is NaN, which no graph can answer.
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

// self.max(), and the other reductions to one of the elements. The gradient is spread over the elements that
// are equal to the result. The same precondition.
enum class Selection : uint8_t { Maximum, Minimum, Median, MedianWithoutNan };
at::Tensor selected(const at::Tensor& self, Selection selection);

}  // namespace oxy::trace
