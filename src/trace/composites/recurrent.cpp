// LSTM, GRU and RNN of padded sequences: nodes where PyTorch's decompositions take numbers, go through the
// steps one by one or keep what only a library knows. A gradient of theirs is a node, too, which computes the
// forward pass again. That would take a GPU longer than eager, where layers with gradients are breaks.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/autocast.h"
#include "runtime/extern/recurrent.h"
#include "runtime/values/host.h"
#include "torch_api/autograd_node.h"
#include "trace/composites/composites.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_error.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// (input, states, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)
struct Call {
  explicit Call(std::span<const c10::IValue> arguments)
      : input(arguments[0].toTensor()),
        weights(arguments[2].toTensorVector()),
        has_biases(arguments[3].toBool()),
        num_layers(arguments[4].toInt()),
        dropout(arguments[5].toDouble()),
        train(arguments[6].toBool()),
        bidirectional(arguments[7].toBool()),
        batch_first(arguments[8].toBool()) {
    if (arguments[1].isTensor())
      states.push_back(arguments[1].toTensor());
    else
      states = arguments[1].toTensorVector();
  }

  // As oxyfuel::recurrent_backward has them.
  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> all = {input};
    all.insert(all.end(), states.begin(), states.end());
    all.insert(all.end(), weights.begin(), weights.end());
    return all;
  }

  at::Tensor input;
  std::vector<at::Tensor> states, weights;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;
};

// The node of a call in autograd's graph of trace tensors.
class RecurrentBackward final : public torch::autograd::Node {
 public:
  RecurrentBackward(std::string cell, const Call& call)
      : cell_(std::move(cell)),
        states_(call.states.size()),
        has_biases_(call.has_biases),
        num_layers_(call.num_layers),
        train_(call.train),
        bidirectional_(call.bidirectional),
        batch_first_(call.batch_first) {
    for (const at::Tensor& tensor : call.tensors()) saved_.emplace_back(tensor, /*is_output=*/false);
  }

  variable_list apply(variable_list&& gradients) override {
    const size_t count = saved_.size();
    if (std::ranges::none_of(gradients, [](const at::Tensor& g) { return g.defined(); }))
      return variable_list(count);
    if (at::GradMode::is_enabled())
      throw_cannot_trace("gradients of the gradients of a recurrent layer, whose steps are not recorded");
    const auto unpacked = [&](size_t first, size_t end) {
      c10::List<at::Tensor> list;
      for (size_t i = first; i < end; ++i) list.push_back(saved_[i].unpack());
      return list;
    };
    c10::List<std::optional<at::Tensor>> flowing;
    for (const at::Tensor& gradient : gradients)
      flowing.push_back(gradient.defined() ? std::optional(gradient) : std::nullopt);
    c10::List<bool> wanted;
    for (size_t i = 0; i < count; ++i) wanted.push_back(task_should_compute_output(i));
    torch::jit::Stack stack = {flowing,
                               saved_[0].unpack(),
                               unpacked(1, 1 + states_),
                               unpacked(1 + states_, count),
                               cell_,
                               has_biases_,
                               num_layers_,
                               train_,
                               bidirectional_,
                               batch_first_,
                               wanted};
    runtime::recurrent_backward().callBoxed(stack);
    const std::vector<at::Tensor> computed = stack.back().toTensorVector();
    variable_list result(count);
    size_t next = 0;
    for (size_t i = 0; i < count; ++i)
      if (wanted.get(i)) result[i] = computed.at(next++);
    return result;
  }

  void release_variables() override {
    for (SavedVariable& saved : saved_) saved.reset_data();
  }
  std::string name() const override { return "RecurrentBackward"; }

 private:
  std::string cell_;
  size_t states_;
  bool has_biases_;
  int64_t num_layers_;
  bool train_, bidirectional_, batch_first_;
  std::vector<SavedVariable> saved_;
};

bool asks_for_gradients(const Call& call) {
  return at::GradMode::is_enabled() &&
         std::ranges::any_of(call.tensors(), [](const at::Tensor& tensor) { return tensor.requires_grad(); });
}

// Of "aten::lstm.input" "lstm".
std::string cell_of(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name.substr(name.find("::") + 2);
}

void recurrent(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Call call{std::span<const c10::IValue>(*stack).last(op.schema().arguments().size())};
  const bool has_gradients = asks_for_gradients(call);
  const std::string cell = cell_of(op);
  // Libraries that PyTorch calls for these keep what only they know, and cuDNN looks where weights lie.
  const bool is_on_host = runtime::is_on_host(call.input);
  if (has_gradients && !is_on_host && trace_tensor(call.input) != nullptr)
    throw_cannot_trace("the gradients of a recurrent layer on a GPU, which need what cuDNN keeps for them");
  const bool is_of_library = !is_on_host || (has_gradients && cell == "lstm");
  const bool drops = call.train && call.dropout != 0;
  const bool is_whole = trace_tensor(call.input) != nullptr && (is_symbolic(call.input) || is_of_library) &&
                        !drops && !runtime::autocast_type(call.input.device().type());
  if (!is_whole) return decompose(op, call.input.device(), stack);
  torch_api::NodePointer<RecurrentBackward> node;
  if (has_gradients) {
    node = torch_api::make_node<RecurrentBackward>(cell, call);
    node->set_next_edges(torch::autograd::collect_next_edges(call.tensors()));
  }
  op.redispatchBoxed(kTraceKeySet, stack);
  if (!node) return;
  const size_t results = op.schema().returns().size();
  for (size_t i = 0; i < results; ++i)
    torch::autograd::set_history(torch::jit::peek(*stack, i, results).toTensor(), node);
}

}  // namespace

void add_recurrent(torch::Library& library) {
  for (const char* name : {"lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"})
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&recurrent>());
}

}  // namespace oxy::trace
