// scaled_dot_product_attention: PyTorch chooses among its kernels by sizes and strides. All of them give the
// result, so that those at hand may decide (LayoutAtHand).

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "trace/composites/composites.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

void attention(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor query = torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  const LayoutAtHand layout(true);
  decompose(op, query.device(), stack);
}

}  // namespace

void add_attention(torch::Library& library) {
  library.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attention>());
}

}  // namespace oxy::trace
