// one_hot, take_along_dim and combinations, whose decompositions read data or take numbers.

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/take_along_dim.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "trace/composites/composites.h"
#include "trace/session/session.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

// one_hot(self, num_classes): PyTorch reads the largest and the smallest class on the host. scatter() refuses
// those that are out of range.
void one_hot(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  const int64_t given = torch::jit::peek(*stack, 1, 2).toInt();
  Session* session = recording_session();
  const bool is_plain = self.scalar_type() == at::kLong && trace_tensor(self) != nullptr &&
                        session != nullptr && session->symbols && session->reads_data;
  if (!is_plain || given == 0 || given < -1) return decompose(op, self.device(), stack);
  if (given < 0 && self.sym_numel().sym_eq(0).guard_or_false(__FILE__, __LINE__))
    return decompose(op, self.device(), stack);
  c10::SymInt classes = given;
  if (given < 0) classes = (self.max() + 1).item().toSymInt();
  c10::SymDimVector sizes(self.sym_sizes().begin(), self.sym_sizes().end());
  sizes.push_back(classes);
  const at::Tensor result = at::zeros_symint(sizes, self.options()).scatter(-1, self.unsqueeze(-1), 1);
  torch::jit::drop(*stack, 2);
  stack->emplace_back(result);
}

// Whether this release of PyTorch wraps indices of take_along_dim() that are out of range. It computes new
// ones then, and its backward pass reads those, whatever becomes of the given ones.
bool wraps_indices() {
  static const bool wraps = [] {
    const c10::impl::ExcludeDispatchKeyGuard below(kKeysOfTracing);
    try {
      at::take_along_dim(at::zeros({1}), at::full({1}, -1, at::kLong), 0);
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }();
  return wraps;
}

// take_along_dim(self, indices, dim)
void take_along_dim(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
  const at::Tensor indices = torch::jit::peek(*stack, 1, 3).toTensor();
  const bool fits = !torch::jit::peek(*stack, 2, 3).isNone() && self.dim() == indices.dim() &&
                    self.dim() > 0 && indices.scalar_type() == at::kLong;
  if (!(is_symbolic(self) || is_symbolic(indices)) || !fits) return decompose(op, self.device(), stack);
  const int64_t dim = at::maybe_wrap_dim(torch::jit::peek(*stack, 2, 3).toInt(), self.dim());
  const auto broadcast = [&](const at::Tensor& tensor, const at::Tensor& other) {
    c10::SymDimVector sizes(other.sym_sizes().begin(), other.sym_sizes().end());
    sizes[static_cast<size_t>(dim)] = tensor.sym_size(dim);
    return tensor.expand_symint(at::infer_size_symdimvector(sizes, tensor.sym_sizes()));
  };
  at::Tensor places = broadcast(indices, self);
  if (wraps_indices()) places = places.remainder(c10::Scalar(self.sym_size(dim)));
  const at::Tensor result = broadcast(self, indices).gather(dim, places);
  torch::jit::drop(*stack, 3);
  stack->emplace_back(result);
}

// Ascending places of `count` things, `r` of them: [n, n, ...], true where they follow each other.
at::Tensor are_ascending(const c10::SymInt& count, int64_t r, bool may_repeat, const at::Tensor& like) {
  const at::Tensor places = at::arange(c10::Scalar(count), like.options().dtype(at::kLong));
  std::vector<c10::SymInt> sizes(static_cast<size_t>(r), 1);
  const auto along = [&](int64_t d) {
    std::vector<c10::SymInt> shape = sizes;
    shape[static_cast<size_t>(d)] = count;
    return places.view_symint(shape);
  };
  at::Tensor mask = may_repeat ? along(0) <= along(1) : along(0) < along(1);
  for (int64_t d = 1; d + 1 < r; ++d)
    mask = mask & (may_repeat ? along(d) <= along(d + 1) : along(d) < along(d + 1));
  return mask;
}

// combinations(self, r, with_replacement): PyTorch's takes numbers.
void combinations(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
  const int64_t r = torch::jit::peek(*stack, 1, 3).toInt();
  if (!is_symbolic(self) || self.dim() != 1 || r < 1) return decompose(op, self.device(), stack);
  const bool may_repeat = torch::jit::peek(*stack, 2, 3).toBool();
  if (r == 1) {
    torch::jit::drop(*stack, 3);
    return stack->push_back(self.unsqueeze(1).clone(at::MemoryFormat::Contiguous));
  }
  const at::Tensor mask = are_ascending(self.sym_size(0), r, may_repeat, self);
  const at::Tensor chosen = at::nonzero(mask).clone(at::MemoryFormat::Contiguous);
  const at::Tensor result = at::index(self, {chosen});
  torch::jit::drop(*stack, 3);
  stack->emplace_back(result);
}

}  // namespace

void add_indexing(torch::Library& library) {
  library.impl("combinations", torch::CppFunction::makeFromBoxedFunction<&combinations>());
  library.impl("one_hot", torch::CppFunction::makeFromBoxedFunction<&one_hot>());
  library.impl("take_along_dim", torch::CppFunction::makeFromBoxedFunction<&take_along_dim>());
}

}  // namespace oxy::trace
