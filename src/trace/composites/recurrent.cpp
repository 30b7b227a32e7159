// LSTM, GRU and RNN of padded sequences: nodes while sizes are symbols and no gradient is asked for, since
// PyTorch's decompositions take numbers or go through the steps one by one.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <span>

#include "trace/composites/composites.h"
#include "trace/tensors/dispatch_key.h"

namespace oxy::trace {

namespace {

bool asks_for_gradients(std::span<const c10::IValue> call) {
  if (!at::GradMode::is_enabled()) return false;
  return std::ranges::any_of(call, [](const c10::IValue& value) {
    if (value.isTensor()) return value.toTensor().defined() && value.toTensor().requires_grad();
    return value.isTensorList() &&
           std::ranges::any_of(value.toTensorVector(), [](const at::Tensor& t) { return t.requires_grad(); });
  });
}

// Arguments: input, states, weights, has_biases, num_layers, dropout, train, ...
void recurrent(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const std::span<const c10::IValue> call = std::span(*stack).last(op.schema().arguments().size());
  const at::Tensor input = call[0].toTensor();
  const bool drops = call[6].toBool() && call[5].toDouble() != 0;
  if (is_symbolic(input) && !drops && !asks_for_gradients(call))
    return op.redispatchBoxed(kTraceKeySet, stack);
  decompose(op, keys, input.device(), stack);
}

}  // namespace

void add_recurrent(torch::Library& library) {
  for (const char* name : {"lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"})
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&recurrent>());
}

}  // namespace oxy::trace
