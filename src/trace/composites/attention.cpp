// scaled_dot_product_attention: PyTorch chooses among its kernels by sizes and strides. All of them give the
// result, so that those at hand may decide (LayoutAtHand), but for what decides the layout of the result.
// None of them may be given tensors without elements: PyTorch answers those without a kernel, and its kernel
// for the CPU divides by their sizes.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "trace/composites/composites.h"
#include "trace/session/session.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

// Other tensors may have sizes of torch.compile's own: nothing is asked of them.
bool has_elements(const at::Tensor& tensor) {
  return trace_tensor(tensor) == nullptr || tensor.sym_numel().sym_ne(0).guard_bool(__FILE__, __LINE__);
}

// A kernel that gives its result the layout of the query takes rows of neighbours only. PyTorch looks at the
// stride of a width of 1, too, which is eager's only where the width was a number from the beginning.
void decide_neighbours(const at::Tensor& tensor) {
  Session* session = recording_session();
  if (session == nullptr || !session->symbols || !is_symbolic(tensor) || tensor.dim() == 0) return;
  const TensorMeta& meta = session->meta_of(session->value_of(tensor));
  torch_api::Symbols& symbols = *session->symbols;
  const sym::Condition has_one = sym::equal(meta.sizes.back(), 1);
  const sym::Condition are_neighbours = sym::equal(meta.strides.back(), 1);
  const std::optional<bool> known = has_one.constant();
  if (!known && is_contiguous(meta)) return;
  if (known ? *known : symbols.decide_layout(has_one) == true) symbols.fix_ones();
  if (!are_neighbours.constant()) symbols.decide_layout(are_neighbours);
}

void attention(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const at::Tensor query = torch::jit::peek(*stack, 0, count).toTensor();
  const at::Tensor key = torch::jit::peek(*stack, 1, count).toTensor();
  const at::Tensor value = torch::jit::peek(*stack, 2, count).toTensor();
  for (const at::Tensor* tensor : {&query, &key, &value}) decide_neighbours(*tensor);
  const LayoutAtHand layout(has_elements(query) && has_elements(key) && has_elements(value));
  decompose(op, query.device(), stack);
}

}  // namespace

void add_attention(torch::Library& library) {
  library.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attention>());
}

}  // namespace oxy::trace
