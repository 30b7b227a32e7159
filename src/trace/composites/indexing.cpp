// one_hot and take_along_dim, whose decompositions read data or take numbers.

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/zeros.h>

#include "trace/composites/composites.h"
#include "trace/session/session.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

// one_hot(self, num_classes): PyTorch reads the largest and the smallest class on the host. scatter() refuses
// those that are out of range.
void one_hot(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  const int64_t given = torch::jit::peek(*stack, 1, 2).toInt();
  Session* session = recording_session();
  const bool is_plain = self.scalar_type() == at::kLong && trace_tensor(self) != nullptr &&
                        session != nullptr && session->symbols && session->reads_data;
  if (!is_plain || given == 0 || given < -1) return decompose(op, keys, self.device(), stack);
  if (given < 0 && self.sym_numel().sym_eq(0).guard_or_false(__FILE__, __LINE__))
    return decompose(op, keys, self.device(), stack);
  c10::SymInt classes = given;
  if (given < 0) classes = (self.max() + 1).item().toSymInt();
  c10::SymDimVector sizes(self.sym_sizes().begin(), self.sym_sizes().end());
  sizes.push_back(classes);
  const at::Tensor result = at::zeros_symint(sizes, self.options()).scatter(-1, self.unsqueeze(-1), 1);
  torch::jit::drop(*stack, 2);
  stack->emplace_back(result);
}

// take_along_dim(self, indices, dim)
void take_along_dim(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
  const at::Tensor indices = torch::jit::peek(*stack, 1, 3).toTensor();
  const bool fits = !torch::jit::peek(*stack, 2, 3).isNone() && self.dim() == indices.dim() &&
                    self.dim() > 0 && indices.scalar_type() == at::kLong;
  if (!(is_symbolic(self) || is_symbolic(indices)) || !fits) return decompose(op, keys, self.device(), stack);
  const int64_t dim = at::maybe_wrap_dim(torch::jit::peek(*stack, 2, 3).toInt(), self.dim());
  const auto broadcast = [&](const at::Tensor& tensor, const at::Tensor& other) {
    c10::SymDimVector sizes(other.sym_sizes().begin(), other.sym_sizes().end());
    sizes[static_cast<size_t>(dim)] = tensor.sym_size(dim);
    return tensor.expand_symint(at::infer_size_symdimvector(sizes, tensor.sym_sizes()));
  };
  const at::Tensor result = broadcast(self, indices).gather(dim, broadcast(indices, self));
  torch::jit::drop(*stack, 3);
  stack->emplace_back(result);
}

}  // namespace

void add_indexing(torch::Library& library) {
  library.impl("one_hot", torch::CppFunction::makeFromBoxedFunction<&one_hot>());
  library.impl("take_along_dim", torch::CppFunction::makeFromBoxedFunction<&take_along_dim>());
}

}  // namespace oxy::trace
