// One step of LSTM, GRU and RNN for symbolic sizes: PyTorch's decompositions take sizes as numbers.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>

#include <optional>
#include <span>
#include <vector>

#include "runtime/values/host.h"
#include "trace/composites/composites.h"

namespace oxy::trace {

namespace {

// (input, state or states, w_ih, w_hh, b_ih=None, b_hh=None)
struct CellCall {
  explicit CellCall(std::span<const c10::IValue> arguments)
      : input(arguments[0].toTensor()), w_ih(arguments[2].toTensor()), w_hh(arguments[3].toTensor()) {
    if (arguments[1].isTensor())
      states.push_back(arguments[1].toTensor());
    else
      states = arguments[1].toTensorVector();
    const auto bias = [](const c10::IValue& value) {
      return value.isNone() ? std::optional<at::Tensor>() : std::optional(value.toTensor());
    };
    b_ih = bias(arguments[4]);
    b_hh = bias(arguments[5]);
  }

  at::Tensor of_input() const { return at::linear(input, w_ih, b_ih); }
  at::Tensor of_state() const { return at::linear(states[0], w_hh, b_hh); }

  at::Tensor input;
  std::vector<at::Tensor> states;
  at::Tensor w_ih, w_hh;
  std::optional<at::Tensor> b_ih, b_hh;
};

bool are_equal(const c10::SymInt& a, const c10::SymInt& b) {
  return a.sym_eq(b).guard_bool(__FILE__, __LINE__);
}

// Whether PyTorch's checks pass. What eager refuses is left to it.
bool is_accepted(const CellCall& call, size_t states, int64_t gates) {
  if (call.states.size() != states || call.input.dim() != 2 || call.w_ih.dim() != 2 || call.w_hh.dim() != 2)
    return false;
  const c10::SymInt hidden = call.w_hh.sym_size(1);
  if (!are_equal(call.input.sym_size(1), call.w_ih.sym_size(1)) ||
      !are_equal(call.w_ih.sym_size(0), hidden * gates) || !are_equal(call.w_hh.sym_size(0), hidden * gates))
    return false;
  for (const at::Tensor& state : call.states)
    if (state.dim() != 2 || !are_equal(state.sym_size(0), call.input.sym_size(0)) ||
        !are_equal(state.sym_size(1), hidden))
      return false;
  return true;
}

std::vector<at::Tensor> lstm(const CellCall& call) {
  const std::vector<at::Tensor> gates = (call.of_state() + call.of_input()).chunk(4, 1);
  const at::Tensor cell = gates[1].sigmoid() * call.states[1] + gates[0].sigmoid() * gates[2].tanh();
  return {gates[3].sigmoid() * cell.tanh(), cell};
}

std::vector<at::Tensor> gru(const CellCall& call) {
  const std::vector<at::Tensor> input = call.of_input().chunk(3, 1), state = call.of_state().chunk(3, 1);
  const at::Tensor reset = (state[0] + input[0]).sigmoid(), kept = (state[1] + input[1]).sigmoid();
  const at::Tensor made = (input[2] + state[2] * reset).tanh();
  return {(call.states[0] - made) * kept + made};
}

std::vector<at::Tensor> rnn_tanh(const CellCall& call) {
  return {(call.of_state() + call.of_input()).tanh()};
}
std::vector<at::Tensor> rnn_relu(const CellCall& call) {
  return {(call.of_state() + call.of_input()).relu()};
}

template <auto kCell, size_t kStates, int64_t kGates>
void cell(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const CellCall call{std::span<const c10::IValue>(*stack).last(count)};
  if (!is_symbolic(call.input) || !runtime::is_on_host(call.input) || !is_accepted(call, kStates, kGates))
    return decompose(op, call.input.device(), stack);
  std::vector<at::Tensor> results = kCell(call);
  torch::jit::drop(*stack, count);
  for (at::Tensor& result : results) stack->emplace_back(std::move(result));
}

}  // namespace

void add_recurrent_cells(torch::Library& library) {
  library.impl("lstm_cell", torch::CppFunction::makeFromBoxedFunction<&cell<lstm, 2, 4>>());
  library.impl("gru_cell", torch::CppFunction::makeFromBoxedFunction<&cell<gru, 1, 3>>());
  library.impl("rnn_tanh_cell", torch::CppFunction::makeFromBoxedFunction<&cell<rnn_tanh, 1, 1>>());
  library.impl("rnn_relu_cell", torch::CppFunction::makeFromBoxedFunction<&cell<rnn_relu, 1, 1>>());
}

}  // namespace oxy::trace
