#include "trace/composites/composites.h"

#include <c10/core/impl/PythonDispatcherTLS.h>

#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

constexpr void (*kComposites[])(torch::Library&) = {
    add_attention,       add_einsum,    add_indexing,  add_matrix_chains, add_matrix_functions,
    add_matrix_products, add_norms,     add_quantiles, add_recurrent,     add_recurrent_cells,
    add_reshaping,       add_sequences, add_signals,   add_upsampling,
};

}  // namespace

void add_composites(torch::Library& library) {
  for (const auto add : kComposites) add(library);
}

c10::DispatchKeySet keys_of_decomposition(c10::Device device) {
  const c10::DispatchKeySet keys(c10::computeDispatchKey(std::nullopt, c10::kStrided, device));
  const bool is_traced_by_python = c10::impl::PythonDispatcherTLS::get_state() != nullptr;
  return is_traced_by_python ? keys.add(c10::DispatchKey::PythonDispatcher) : keys;
}

void decompose(const c10::OperatorHandle& op, c10::Device device, torch::jit::Stack* stack) {
  op.redispatchBoxed(keys_of_decomposition(device), stack);
}

bool is_symbolic(const at::Tensor& tensor) {
  return trace_tensor(tensor) != nullptr && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

}  // namespace oxy::trace
