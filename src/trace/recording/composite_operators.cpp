#include "trace/recording/composite_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

void attention(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor query = torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  const LayoutAtHand layout(true);
  op.redispatchBoxed(keys_of_decomposition(keys, query.device()), stack);
}

}  // namespace

c10::DispatchKeySet keys_of_decomposition(c10::DispatchKeySet keys, c10::Device device) {
  const c10::DispatchKeySet own(c10::computeDispatchKey(std::nullopt, c10::kStrided, device));
  return ((keys & c10::after_autograd_keyset) | own) - kTraceKeySet;
}

void add_attention(torch::Library& library) {
  library.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attention>());
}

}  // namespace oxy::trace
