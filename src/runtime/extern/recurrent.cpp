#include "runtime/extern/recurrent.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <string>
#include <vector>

#include "cpy/gil.h"

namespace oxy::runtime {

namespace {

// Autograd takes part, whatever the caller has switched off: plans run without it. Autocast does not, as its
// casts are nodes of a graph.
class UnderAutograd {
 public:
  UnderAutograd() : keys_(included(), excluded()), was_on_(state().get_multithreading_enabled()) {
    state().set_multithreading_enabled(false);  // a queue that is being recorded belongs to this thread
  }
  ~UnderAutograd() { state().set_multithreading_enabled(was_on_); }
  UnderAutograd(const UnderAutograd&) = delete;
  UnderAutograd& operator=(const UnderAutograd&) = delete;

 private:
  static c10::DispatchKeySet included() { return c10::impl::tls_local_dispatch_key_set().included_; }
  static c10::DispatchKeySet excluded() {
    return (c10::impl::tls_local_dispatch_key_set().excluded_ -
            c10::autograd_dispatch_keyset_with_ADInplaceOrView) |
           c10::autocast_dispatch_keyset;
  }
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }

  c10::InferenceMode normal_tensors_{false};
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode grad_mode_{true};
  bool was_on_;
};

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& results,
                                     const std::vector<at::Tensor>& leaves,
                                     const std::vector<std::optional<at::Tensor>>& gradients) {
  std::vector<at::Tensor> roots, flowing;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!gradients[i] || !gradients[i]->defined()) continue;
    roots.push_back(results[i]);
    flowing.push_back(*gradients[i]);
  }
  // PyTorch's engine waits for nobody who wants the GIL.
  std::optional<cpy::WithoutGil> without_gil;
  if (PyGILState_Check() != 0) without_gil.emplace();
  return torch::autograd::grad(roots, leaves, flowing, /*retain_graph=*/false, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

// Arguments: gradients, input, states, params, cell, has_biases, num_layers, train, bidirectional,
// batch_first, wanted.
void run_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const torch::jit::Stack call(stack->end() - static_cast<int64_t>(op.schema().arguments().size()),
                               stack->end());
  torch::jit::drop(*stack, call.size());
  const c10::List<bool> wanted = call[10].toBoolList();
  std::vector<at::Tensor> leaves, computed;
  {
    const UnderAutograd under_autograd;
    size_t next = 0;
    const auto leaf = [&](const at::Tensor& tensor) {
      at::Tensor made = tensor.detach();
      if (wanted.get(next++)) leaves.push_back(made.requires_grad_());
      return made;
    };
    const auto leaf_list = [&](const c10::IValue& list) {
      c10::List<at::Tensor> made;
      for (const at::Tensor& tensor : list.toTensorVector()) made.push_back(leaf(tensor));
      return made;
    };
    const at::Tensor input = leaf(call[1].toTensor());
    const c10::List<at::Tensor> states = leaf_list(call[2]), params = leaf_list(call[3]);
    const std::string& cell = call[4].toStringRef();
    torch::jit::Stack forward = {input};
    if (cell == "lstm")
      forward.emplace_back(states);
    else
      forward.emplace_back(states.get(0));
    constexpr double kDropout = 0;
    for (const c10::IValue& value :
         {c10::IValue(params), call[5], call[6], c10::IValue(kDropout), call[7], call[8], call[9]})
      forward.push_back(value);
    c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + cell).c_str(), "input").callBoxed(forward);
    std::vector<at::Tensor> results;
    for (const c10::IValue& result : forward) results.push_back(result.toTensor());
    computed = gradients_of(results, leaves, call[0].toOptionalTensorVector());
  }
  c10::List<at::Tensor> made;
  for (size_t i = 0; i < computed.size(); ++i)
    made.push_back(computed[i].defined() ? computed[i].contiguous()
                                         : at::zeros_like(leaves[i], at::MemoryFormat::Contiguous));
  stack->emplace_back(std::move(made));
}

}  // namespace

void add_recurrent_backward(torch::Library& library) {
  library.def(
      "recurrent_backward(Tensor?[] gradients, Tensor input, Tensor[] states, Tensor[] params, str cell, "
      "bool has_biases, int num_layers, bool train, bool bidirectional, bool batch_first, bool[] wanted) "
      "-> Tensor[]");
  library.impl("recurrent_backward",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                               torch::CppFunction::makeFromBoxedFunction<&run_backward>()));
}

c10::OperatorHandle recurrent_backward() {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("oxyfuel::recurrent_backward", "");
  return op;
}

}  // namespace oxy::runtime
