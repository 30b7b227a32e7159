#include "trace/composites/reduction_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "torch_api/autograd_node.h"
#include "trace/composites/with_gradient.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// For each element the product of the others, for a tensor of which some element is zero. PyTorch multiplies
// them one by one, so that results differ where the product of all overflows and that of the others does not.
at::Tensor product_of_others(const at::Tensor& self, const at::Tensor& is_zero, const at::Tensor& zeros,
                             std::optional<int64_t> dim) {
  const auto total = [&](const at::Tensor& of) { return dim ? of.sum(*dim, /*keepdim=*/true) : of.sum(); };
  const auto product = [&](const at::Tensor& of) {
    return dim ? of.prod(*dim, /*keepdim=*/true) : of.prod();
  };
  const at::Tensor is_nan = self.isnan(), is_infinite = self.isinf();
  const at::Tensor numbers = self.masked_fill(is_zero.logical_or(is_nan), 1);
  const at::Tensor finite = product(numbers.masked_fill(is_infinite, 1)), all = product(numbers);
  const at::Tensor other_zero = zeros.gt(is_zero), other_nan = total(is_nan).gt(is_nan),
                   other_infinite = total(is_infinite).gt(is_infinite);
  const at::Tensor of_infinite = at::where(other_infinite, all * self, finite);
  const at::Tensor of_number = at::where(is_infinite, of_infinite, all / self);
  const at::Tensor others = at::where(other_zero, 0, at::where(is_zero.logical_or(is_nan), all, of_number));
  return others.masked_fill(other_nan.logical_or(other_zero.logical_and(other_infinite)),
                            std::numeric_limits<double>::quiet_NaN());
}

// Of prod(). The gradient of an element is the product of the others.
at::Tensor gradient_of_product(at::Tensor gradient, const at::Tensor& self, at::Tensor result,
                               std::optional<int64_t> dim, bool keepdim) {
  if (self.dim() == 0) return gradient;
  if (dim && !keepdim) {
    gradient = gradient.unsqueeze(*dim);
    result = result.unsqueeze(*dim);
  }
  const at::Tensor is_zero = self.eq(0);
  const at::Tensor zeros = dim ? is_zero.sum(*dim, /*keepdim=*/true) : is_zero.sum();
  // The result may have been written to, behind autograd's back: it is not read where there are zeros.
  const at::Tensor no_zero = dim ? is_zero.any().logical_not() : zeros.eq(0);
  const at::Tensor of_self =
      gradient * at::where(no_zero, result / self, product_of_others(self, is_zero, zeros, dim));
  // Of all elements, PyTorch does not read a gradient that nothing comes of.
  return dim ? of_self : at::where(zeros.le(1), of_self, 0);
}

at::Tensor sums_from_here(const at::Tensor& tensor, int64_t dim) {
  return tensor.flip(dim).cumsum(dim).flip(dim);
}

// Of cumprod(). An element counts in the products from its own on. Those from the first zero on are zero:
// only that zero has a gradient of them, and only of those before the next zero.
at::Tensor gradient_of_cumulative_product(const at::Tensor& gradient, const at::Tensor& self,
                                          const at::Tensor& result, int64_t dim) {
  if (self.dim() == 0) return gradient;
  const at::Tensor is_zero = self.eq(0);
  const at::Tensor zeros = is_zero.cumsum(dim);
  const at::Tensor is_before = zeros.eq(0), is_behind = zeros.eq(1);
  const at::Tensor is_first = is_zero.logical_and(is_behind);
  const at::Tensor before = sums_from_here(at::where(is_before, gradient * result, 0), dim) / self;
  const at::Tensor from_zero = at::where(is_behind.logical_and(is_first.logical_not()), self, 1).cumprod(dim);
  const at::Tensor behind = (at::where(is_behind, gradient, 0) * from_zero).sum(dim, /*keepdim=*/true) *
                            at::where(is_before, self, 1).prod(dim, /*keepdim=*/true);
  return at::where(is_before, before, at::where(is_first, behind, 0));
}

class ProductBackward final : public torch::autograd::Node {
 public:
  ProductBackward(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim, bool is_cumulative)
      : self_(self, /*is_output=*/false), dim_(dim), keepdim_(keepdim), is_cumulative_(is_cumulative) {}

  void save_result(const at::Tensor& result) { result_ = SavedVariable(result, /*is_output=*/true); }

  variable_list apply(variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    if (at::GradMode::is_enabled()) throw_cannot_trace("gradients of the gradients of a product of elements");
    const at::Tensor self = self_.unpack(), result = result_.unpack(getptr());
    return {is_cumulative_ ? gradient_of_cumulative_product(gradients[0], self, result, *dim_)
                           : gradient_of_product(gradients[0], self, result, dim_, keepdim_)};
  }

  void release_variables() override {
    self_.reset_data();
    result_.reset_data();
  }
  std::string name() const override { return "ProductBackward"; }

 private:
  SavedVariable self_, result_;
  std::optional<int64_t> dim_;
  bool keepdim_, is_cumulative_;
};

class SelectionBackward final : public torch::autograd::Node {
 public:
  explicit SelectionBackward(const at::Tensor& self) : self_(self, /*is_output=*/false) {}

  void save_result(const at::Tensor& result) { result_ = SavedVariable(result, /*is_output=*/true); }

  variable_list apply(variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    const at::Tensor self = self_.unpack(), result = result_.unpack(getptr());
    const at::Tensor is_selected = at::where(result.isnan(), self.isnan(), self.eq(result));
    return {at::where(is_selected, gradients[0] / is_selected.sum(), 0)};
  }

  void release_variables() override {
    self_.reset_data();
    result_.reset_data();
  }
  std::string name() const override { return "SelectionBackward"; }

 private:
  SavedVariable self_, result_;
};

}  // namespace

at::Tensor product(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  const auto node = torch_api::make_node<ProductBackward>(self, dim, keepdim, /*is_cumulative=*/false);
  return with_gradient(self, node, [&] { return dim ? self.prod(*dim, keepdim) : self.prod(); });
}

at::Tensor cumulative_product(const at::Tensor& self, int64_t dim) {
  const auto node =
      torch_api::make_node<ProductBackward>(self, dim, /*keepdim=*/true, /*is_cumulative=*/true);
  return with_gradient(self, node, [&] { return self.cumprod(dim); });
}

at::Tensor selected(const at::Tensor& self, Selection selection) {
  const auto node = torch_api::make_node<SelectionBackward>(self);
  return with_gradient(self, node, [&] {
    switch (selection) {
      case Selection::Maximum:
        return self.max();
      case Selection::Minimum:
        return self.min();
      case Selection::Median:
        return self.median();
      case Selection::MedianWithoutNan:
        return self.nanmedian();
    }
    throw InternalError("an unknown selection");
  });
}

}  // namespace oxy::trace
