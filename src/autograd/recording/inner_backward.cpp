#include "autograd/recording/inner_backward.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "autograd/recording/engine.h"
#include "base/error.h"
#include "trace/session/session.h"

namespace oxy::autograd {

using trace::Session;
using trace::trace_tensor;
using trace::TraceTensor;
namespace {

using torch::autograd::impl::gradient_edge;

torch::autograd::edge_list edges_of(const std::vector<at::Tensor>& tensors) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& tensor : tensors) {
    // A view that was made without grad says that it requires grad, by its base, and has no edge.
    const torch::autograd::Edge edge =
        tensor.requires_grad() ? gradient_edge(tensor) : torch::autograd::Edge();
    if (!edge.is_valid()) throw Unsupported("a backward pass of a tensor that does not require grad");
    edges.push_back(edge);
  }
  return edges;
}

bool is_of_session(const Session& session, const at::Tensor& tensor) {
  const TraceTensor* trace = trace_tensor(tensor);
  return trace != nullptr && trace->recording() == session.id;
}

// A tensor that was given to the region may be what another one, with a history, was computed from. Both the
// gradient of the pass and what flows through that history count then, and the recording knows of the first.
void require_known_paths(const Session& session, const InnerBackward& pass) {
  std::vector<const torch::autograd::Node*> given;
  for (const torch::autograd::Edge& edge : edges_of(pass.inputs)) {
    const torch::autograd::Node* node = edge.function.get();
    const auto* accumulator = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
    const bool is_given = accumulator ? session.input_of.contains(accumulator->variable.unsafeGetTensorImpl())
                                      : dynamic_cast<const torch::autograd::Error*>(node) != nullptr;
    if (is_given) given.push_back(node);
  }
  if (given.empty()) return;
  for (const torch::autograd::Node* node : reached_from(edges_of(pass.roots)))
    if (dynamic_cast<const torch::autograd::Error*>(node) != nullptr &&
        std::any_of(given.begin(), given.end(), [&](const auto* input) { return input != node; }))
      throw Unsupported("a gradient flows into what was computed before the captured region");
}

std::vector<at::Tensor> run(Session& session, const InnerBackward& pass, bool accumulate) {
  require_known_paths(session, pass);
  session.ran_backward = true;
  return run_engine(edges_of(pass.roots), pass.tangents, edges_of(pass.inputs),
                    {pass.keep_graph, pass.create_graph, accumulate});
}

}  // namespace

std::vector<at::Tensor> leaves_of(const trace::Recorder& recorder, const InnerBackward& pass) {
  const Session& session = recorder.session();
  std::vector<at::Tensor> leaves;
  for (torch::autograd::Node* node : reached_from(edges_of(pass.roots))) {
    if (dynamic_cast<torch::autograd::Error*>(node) != nullptr && pass.inputs.empty())
      throw Unsupported("a backward pass goes on into what was computed before the captured region");
    const auto* accumulator = dynamic_cast<torch::autograd::AccumulateGrad*>(node);
    if (accumulator == nullptr) continue;
    const at::Tensor& leaf = accumulator->variable;
    if (!pass.inputs.empty() &&
        std::none_of(pass.inputs.begin(), pass.inputs.end(), [&](const auto& t) { return t.is_same(leaf); }))
      continue;
    if (!is_of_session(session, leaf))
      throw Unsupported("a gradient flows into a tensor that is reached past the captured code",
                        "pass it as an argument or keep it in an attribute");
    if (std::none_of(leaves.begin(), leaves.end(), [&](const auto& t) { return t.is_same(leaf); }))
      leaves.push_back(leaf);
  }
  return leaves;
}

void accumulate_gradients(trace::Recorder& recorder, const InnerBackward& pass) {
  Session& session = recorder.session();
  for (const at::Tensor& input : pass.inputs)
    if (!input.is_leaf()) throw Unsupported("gradients are collected in a tensor that is not a leaf");
  run(session, pass, true);
}

std::vector<at::Tensor> gradients_of(trace::Recorder& recorder, const InnerBackward& pass) {
  Session& session = recorder.session();
  return run(session, pass, false);
}

}  // namespace oxy::autograd
