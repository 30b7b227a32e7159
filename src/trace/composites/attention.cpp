// scaled_dot_product_attention: PyTorch chooses among its kernels by sizes and strides. All of them give the
// result, so that those at hand may decide (LayoutAtHand). None of them may be given tensors without
// elements: PyTorch answers those without a kernel, and its kernel for the CPU divides by their sizes.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "trace/composites/composites.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

// Other tensors may have sizes of torch.compile's own: nothing is asked of them.
bool has_elements(const at::Tensor& tensor) {
  return trace_tensor(tensor) == nullptr || tensor.sym_numel().sym_ne(0).guard_bool(__FILE__, __LINE__);
}

void attention(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const at::Tensor query = torch::jit::peek(*stack, 0, count).toTensor();
  const at::Tensor key = torch::jit::peek(*stack, 1, count).toTensor();
  const at::Tensor value = torch::jit::peek(*stack, 2, count).toTensor();
  const LayoutAtHand layout(has_elements(query) && has_elements(key) && has_elements(value));
  decompose(op, query.device(), stack);
}

}  // namespace

void add_attention(torch::Library& library) {
  library.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attention>());
}

}  // namespace oxy::trace
