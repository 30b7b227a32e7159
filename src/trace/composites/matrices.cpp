// Covariance, matrix norms and ranks, whose decompositions take numbers.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linalg_matrix_rank.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "trace/composites/composites.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

// linalg_matrix_norm(self, ord, ...): sizes are looked at to refuse empty matrices alone.
void matrix_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  const bool has_elements = !is_symbolic(self) || self.sym_numel().sym_ne(0).guard_bool(__FILE__, __LINE__);
  const LayoutAtHand layout(has_elements);
  decompose(op, self.device(), stack);
}

// cov(self, correction, fweights, aweights): PyTorch's takes numbers alone.
void covariance(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 4).toTensor();
  const bool has_weights =
      !torch::jit::peek(*stack, 2, 4).isNone() || !torch::jit::peek(*stack, 3, 4).isNone();
  if (!is_symbolic(self) || has_weights || self.dim() > 2 || !at::isFloatingType(self.scalar_type()))
    return decompose(op, self.device(), stack);
  const int64_t correction = torch::jit::peek(*stack, 1, 4).toInt();
  const at::Tensor rows = self.dim() < 2 ? self.reshape_symint({1, self.sym_numel()}) : self;
  const c10::SymInt count = rows.sym_size(1);
  // With none left PyTorch warns.
  if (!count.sym_gt(correction).guard_bool(__FILE__, __LINE__)) return decompose(op, self.device(), stack);
  const auto number = [&](const c10::SymInt& value) {
    return at::scalar_tensor(c10::Scalar(value), rows.options().dtype(at::kLong));
  };
  const at::Tensor centred = rows - (rows.sum(1) / number(count)).unsqueeze(1);
  const at::Tensor result = at::mm(centred, centred.t()).true_divide(number(count - correction)).squeeze();
  torch::jit::drop(*stack, 4);
  stack->emplace_back(result);
}

// linalg_matrix_rank.atol_rtol_float and .atol_rtol_tensor (self, atol, rtol, hermitian): PyTorch computes
// the usual tolerance as a number. As a tensor it is given one.
void matrix_rank(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 4).toTensor();
  const c10::IValue absolute = torch::jit::peek(*stack, 1, 4);
  const bool has_relative = !torch::jit::peek(*stack, 2, 4).isNone();
  if (!is_symbolic(self) || has_relative || self.dim() < 2 || !at::isFloatingType(self.scalar_type()))
    return decompose(op, self.device(), stack);
  const double epsilon = self.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                           : std::numeric_limits<float>::epsilon();
  const c10::SymInt longer = self.sym_size(-2).max(self.sym_size(-1));
  at::Tensor relative =
      (at::scalar_tensor(c10::Scalar(longer), self.options().dtype(at::kLong)).to(at::kDouble) * epsilon)
          .to(self.scalar_type());
  const at::Tensor least = absolute.isTensor()   ? absolute.toTensor()
                           : absolute.isDouble() ? at::scalar_tensor(absolute.toDouble(), self.options())
                                                 : at::scalar_tensor(0, self.options());
  if (!absolute.isNone()) relative = at::where(least > 0, at::zeros_like(relative), relative);
  const at::Tensor result =
      at::linalg_matrix_rank(self, least, relative, torch::jit::peek(*stack, 3, 4).toBool());
  torch::jit::drop(*stack, 4);
  stack->emplace_back(result);
}

}  // namespace

void add_matrix_functions(torch::Library& library) {
  library.impl("cov", torch::CppFunction::makeFromBoxedFunction<&covariance>());
  for (const char* name : {"linalg_matrix_rank.atol_rtol_float", "linalg_matrix_rank.atol_rtol_tensor"})
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&matrix_rank>());
  library.impl("linalg_matrix_norm", torch::CppFunction::makeFromBoxedFunction<&matrix_norm>());
}

}  // namespace oxy::trace
