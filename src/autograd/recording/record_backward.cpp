#include "autograd/recording/record_backward.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/ones_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "autograd/recording/backward_network.h"
#include "autograd/recording/engine.h"
#include "autograd/recording/kept_by_parts.h"
#include "autograd/recording/separate_backward.h"
#include "autograd/recording/view_creation.h"
#include "autograd/recording/view_states.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "runtime/device/autocast.h"
#include "runtime/values/convert.h"
#include "torch_api/symbolic_node.h"
#include "trace/functional/overlap.h"
#include "trace/session/session.h"

namespace oxy::autograd {

namespace {

using graph::ValueId;
using torch::autograd::Edge;
using trace::Session;

// The tensor that autograd takes `tensor` to be a view of, or `tensor`.
at::Tensor differentiable_base(const at::Tensor& tensor) {
  return tensor.is_view() ? at::Tensor(tensor._base()) : tensor;
}

// Such a view requires grad as its base does, but has no history.
bool is_no_grad_view(const at::Tensor& tensor) {
  return creation_of(tensor) == CreationMeta::NO_GRAD_MODE;
}

// The view operators that lead from `base` to `view`; empty if others do.
std::vector<ViewStep> steps_between(const graph::Graph& graph, ValueId base, ValueId view) {
  std::vector<ViewStep> steps;
  while (view != base) {
    const graph::NodeId n = graph.values[view].node;
    if (n == graph::kNoNode) return {};
    const graph::Node& node = graph.nodes[n];
    // as_strided() counts from the beginning of a storage, which may be another one at run time.
    if (!node.op->is_view() || ops::traits_of(*node.op).addresses_storage()) return {};
    const auto output = std::ranges::find(node.outputs, view) - node.outputs.begin();
    steps.push_back({n, static_cast<size_t>(output), view});
    view = graph::kNoValue;
    graph::for_each_input(node, [&](ValueId id) { view = id; });
    if (view == graph::kNoValue) return {};
  }
  std::ranges::reverse(steps);
  return steps;
}

// Whether as_strided() of `base` makes `view` with the gradient that the recorded operators lead to `base`.
// as_strided() of a part leads none to the elements that are outside of the part.
bool is_strided_of_whole(const graph::Graph& graph, ValueId base, ValueId view) {
  const auto elements = [&](ValueId id) { return element_count(graph.meta(id)); };
  bool is_below_strided = false;
  while (view != base) {
    const graph::NodeId n = graph.values[view].node;
    if (n == graph::kNoNode) return true;
    const graph::Node& node = graph.nodes[n];
    if (is_below_strided && elements(view) != elements(base)) return false;
    if (ops::traits_of(*node.op).addresses_storage()) {
      if (is_below_strided) return false;
      is_below_strided = true;
    }
    view = graph::kNoValue;
    graph::for_each_input(node, [&](ValueId id) { view = id; });
    if (view == graph::kNoValue) return true;
  }
  return true;
}

torch::autograd::edge_list leaves_of(const Session& session) {
  torch::autograd::edge_list leaves;
  for (const at::Tensor& input : session.inputs)
    if (input.requires_grad()) leaves.push_back(torch::autograd::impl::gradient_edge(input));
  return leaves;
}

// What eager says when one more gradient of `tensor` is asked for; empty if it would come. What the attempt
// records is read by nobody.
std::string spent_history(Session& session, const at::Tensor& tensor) {
  const torch::autograd::edge_list leaves = leaves_of(session);
  if (leaves.empty()) return "";
  const at::Tensor tangent = at::ones_like(tensor.detach());
  try {
    run_engine({torch::autograd::impl::gradient_edge(tensor)}, {tangent}, leaves, {.keep_graph = true});
    return "";
  } catch (const BackwardRaises& raised) {
    return raised.message();
  }
}

// Whether somebody notices that a gradient comes to the node, besides those behind it.
bool is_noticed(torch::autograd::Node& node) {
  if (dynamic_cast<ProgramNode*>(&node) != nullptr || has_hooks(node)) return true;
  const auto* accumulator = dynamic_cast<const torch::autograd::AccumulateGrad*>(&node);
  return accumulator != nullptr && accumulator->variable.grad().defined();
}

// The recorded backward pass has what flows into the inputs, and no more than that.
void check_nothing_else_is_noticed(const torch::autograd::edge_list& roots,
                                   const torch::autograd::edge_list& leaves) {
  for (torch::autograd::Node* node : reached_from(roots)) {
    if (!is_noticed(*node)) continue;
    const auto behind = reached_from({Edge(node->getptr(), 0)});
    if (std::none_of(leaves.begin(), leaves.end(),
                     [&](const Edge& leaf) { return behind.contains(leaf.function.get()); }))
      throw Unsupported(
          "a hook, or the backward() of a function, is for the gradient of a tensor that the region made "
          "with requires_grad=True");
  }
}

std::vector<SpentSource> inputs_behind(const Session& session, const at::Tensor& tensor) {
  const auto reached = reached_from({torch::autograd::impl::gradient_edge(tensor)});
  std::vector<SpentSource> inputs;
  for (size_t i = 0; i < session.inputs.size(); ++i) {
    const at::Tensor& input = session.inputs[i];
    if (input.requires_grad() && reached.contains(torch::autograd::impl::gradient_edge(input).function.get()))
      inputs.push_back({true, i});
  }
  return inputs;
}

// Views of inputs and of other results are made anew, without what lies between.
void check_views_are_plain(const std::vector<at::Tensor>& outputs, const ViewStates& states,
                           const torch::autograd::edge_list& results,
                           const torch::autograd::edge_list& leaves) {
  const auto is_end = [&](const Edge& edge) {
    return std::ranges::find(results, edge) != results.end() ||
           std::ranges::find(leaves, edge) != leaves.end();
  };
  std::unordered_set<torch::autograd::Node*> seen;
  for (const at::Tensor& output : outputs) {
    if (!output.requires_grad() || !output.is_view() || is_outdated(states.of(output))) continue;
    std::vector<Edge> stack = {torch::autograd::impl::gradient_edge(output)};
    while (!stack.empty()) {
      const Edge edge = std::move(stack.back());
      stack.pop_back();
      if (!edge.is_valid() || is_end(edge) || !seen.insert(edge.function.get()).second) continue;
      if (is_noticed(*edge.function)) throw Unsupported("a view with a hook is a result");
      for (const Edge& next : edge.function->next_edges()) stack.push_back(next);
    }
  }
}

// True for a view of all elements of `base`, and for one whose elements share memory: autograd cannot express
// a write to a part of such a tensor unless it is a view of another one.
bool has_to_be_view(Session& session, const at::Tensor& view, const at::Tensor& base) {
  const TensorMeta& own = session.recording.graph.meta(session.value_of(view));
  const TensorMeta& whole = session.recording.graph.meta(session.value_of(base));
  return element_count(own) == element_count(whole) || trace::may_overlap(own);
}

// True where no hook lies between the two.
bool is_plain_view(const at::Tensor& view, const at::Tensor& base) {
  if (!view.is_view() || is_no_grad_view(view)) return false;
  const Edge end = torch::autograd::impl::gradient_edge(base);
  for (Edge edge = torch::autograd::impl::gradient_edge(view); edge != end;
       edge = edge.function->next_edge(0))
    if (!edge.is_valid() || is_noticed(*edge.function) || edge.function->num_outputs() == 0) return false;
  return true;
}

// The results that come into autograd's graph by a place of their own, and those that only say that their
// history is gone. The others are views of either, or of inputs.
struct Carriers {
  std::vector<at::Tensor> own;
  std::vector<at::Tensor> views;                            // those of the others that lie between results
  std::unordered_map<c10::TensorImpl*, std::string> spent;  // what eager says
};

Carriers carriers_of(Session& session, const std::vector<at::Tensor>& outputs, const ViewStates& states) {
  std::unordered_set<c10::TensorImpl*> inputs;
  for (const at::Tensor& input : session.inputs) inputs.insert(input.unsafeGetTensorImpl());
  // Several views of one tensor are given back as views of that tensor, whether the caller sees it or not.
  std::unordered_map<c10::TensorImpl*, int> views_of;
  for (const at::Tensor& output : outputs)
    if (output.requires_grad()) ++views_of[differentiable_base(output).unsafeGetTensorImpl()];
  Carriers carriers;
  std::unordered_set<c10::TensorImpl*> known;
  for (const at::Tensor& output : outputs) {
    if (!output.requires_grad()) continue;
    if (creation_of(output) == CreationMeta::INFERENCE_MODE)
      throw Unsupported("a view of a tensor that requires grad is made under inference mode");
    const at::Tensor base = differentiable_base(output);
    if (inputs.contains(base.unsafeGetTensorImpl())) continue;
    if (base.is_leaf())
      throw Unsupported("a tensor is made with requires_grad=True, and it or a view of it is a result");
    bool is_shared = views_of[base.unsafeGetTensorImpl()] > 1 || states.of(output) != ViewState::Free;
    const auto spent_history_of = [&](const at::Tensor& carrier) {
      return session.ran_backward ? spent_history(session, carrier) : "";
    };
    std::string spent = spent_history_of(is_shared ? base : output);
    // A write to a view detaches the hooks of the view. So a result that is a view in eager has to be one
    // here. A view of only some elements is returned as a tensor of its own: its base would keep the others
    // alive.
    if (!is_shared && spent.empty() && is_plain_view(output, base) && has_to_be_view(session, output, base) &&
        spent_history_of(base).empty())
      is_shared = true;
    const at::Tensor& carrier = is_shared ? base : output;
    if (!known.insert(carrier.unsafeGetTensorImpl()).second) continue;
    if (spent.empty()) {
      carriers.own.push_back(carrier);
      continue;
    }
    if (is_shared) throw Unsupported("views of a result whose backward pass has been run");
    carriers.spent.emplace(carrier.unsafeGetTensorImpl(), std::move(spent));
  }
  return carriers;
}

torch::autograd::edge_list edges_of(const std::vector<at::Tensor>& tensors) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& tensor : tensors) edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  return edges;
}

bool leads_to(const Edge& root, const Edge& target) {
  return std::ranges::any_of(reached_from({root}), [&](torch::autograd::Node* node) {
    return std::ranges::find(node->next_edges(), target) != node->next_edges().end();
  });
}

// Views that are results, with a gradient from other results or for other such views.
std::vector<at::Tensor> views_between(const std::vector<at::Tensor>& outputs, const ViewStates& states,
                                      const Carriers& carriers) {
  std::vector<at::Tensor> views, others;
  for (const at::Tensor& output : outputs) {
    const auto is_output = [&](const at::Tensor& known) { return known.is_same(output); };
    if (output.requires_grad() && output.is_view() && !is_no_grad_view(output) &&
        !is_outdated(states.of(output)) && !carriers.spent.contains(output.unsafeGetTensorImpl()) &&
        std::ranges::none_of(carriers.own, is_output) && std::ranges::none_of(others, is_output))
      others.push_back(output);
  }
  torch::autograd::edge_list roots = edges_of(carriers.own);
  const torch::autograd::edge_list edges = edges_of(others);
  roots.insert(roots.end(), edges.begin(), edges.end());
  BackwardNetwork network(roots);
  network.set_places(edges);
  const std::vector<bool> goes_on(edges.size(), false);
  const auto is_place = [](const NetworkEdge& edge) { return edge.place.is_valid(); };
  std::vector<bool> lies_behind(edges.size());
  for (const NetworkId id : network.ids())
    for (const NetworkEdge& edge : network.edges(id))
      if (is_place(edge)) lies_behind[edge.place.index()] = true;
  for (size_t v = 0; v < others.size(); ++v) {
    const auto leads_to_a_place = [&](NetworkId id) {
      return std::ranges::any_of(network.edges(id), is_place);
    };
    const auto place = static_cast<size_t>(std::ranges::find(edges, edges[v]) - edges.begin());
    if (lies_behind[place] ||
        std::ranges::any_of(stretch_of(PlaceId(v), network, goes_on).nodes, leads_to_a_place))
      views.push_back(others[v]);
  }
  return views;
}

std::vector<at::Tensor> with_tangents(const Carriers& carriers) {
  std::vector<at::Tensor> tensors = carriers.own;
  tensors.insert(tensors.end(), carriers.views.begin(), carriers.views.end());
  return tensors;
}

bool are_parts_of_their_own(const Carriers& carriers, const SeparateBackward& separate) {
  const auto part_of = [](const SeparateBackward::Place& place) { return place.tangent.part; };
  for (size_t v = 0; v < carriers.views.size(); ++v)
    if (std::ranges::count(separate.places, part_of(separate.places[carriers.own.size() + v]), part_of) != 1)
      return false;
  return true;
}

// What flows into others (a tensor computed from a view that was made without grad) is not recorded.
void check_results_come_from_leaves(const SeparateBackward& separate, size_t results) {
  for (size_t t = 0; t < results; ++t)
    if (std::ranges::find(separate.places[t].flows, true) == separate.places[t].flows.end())
      throw Unsupported("a result requires grad, and no argument that does is behind it");
}

// What it takes to make the output anew as a view, if it is one with a history.
void note_view(Session& session, const at::Tensor& tensor, ViewState state, ForwardOutput& output,
               Joint& joint) {
  output.value = session.value_of(tensor);
  std::vector<ViewStep>& steps = output.view_steps;
  output.view_state = state;
  if (!tensor.requires_grad() || !tensor.is_view()) return;
  const graph::Graph& graph = session.recording.graph;
  steps = steps_between(graph, session.value_of(differentiable_base(tensor)), session.value_of(tensor));
  if (steps.empty() && output.view_state != ViewState::Free)
    throw Unsupported("a result is a view that may not be written to, made by as_strided()");
  if (steps.empty() &&
      !is_strided_of_whole(graph, session.value_of(differentiable_base(tensor)), output.value))
    throw Unsupported("a result is a view, made by as_strided() of a part of its tensor");
  for (const ViewStep& step : steps) {
    const trace::NodeHistory& history = session.recording.histories[step.node];
    joint.view_calls.try_emplace(
        step.node, ViewCall{graph.nodes[step.node], history.grad_mode, !history.requires_grad.empty()});
  }
}

// Makes the carriers of tangents, then the other results, the outputs of the graph, each once.
void add_outputs(Session& session, const std::vector<at::Tensor>& outputs, const ViewStates& states,
                 const Carriers& carriers, Joint& joint) {
  const graph::Graph& graph = session.recording.graph;
  std::unordered_map<c10::TensorImpl*, int32_t> index_of;
  std::vector<at::Tensor> added;
  const auto add = [&](const at::Tensor& tensor) {
    const auto index = static_cast<int32_t>(graph.outputs.size());
    if (!index_of.emplace(tensor.unsafeGetTensorImpl(), index).second) return;
    session.add_output(tensor);
    ForwardOutput& output = joint.outputs.emplace_back();
    output.requires_grad = tensor.requires_grad();
    note_view(session, tensor, states.of(tensor), output, joint);
    const auto spent = carriers.spent.find(tensor.unsafeGetTensorImpl());
    if (spent != carriers.spent.end()) {
      output.spent = spent->second;
      output.spent_sources = inputs_behind(session, tensor);
    }
    added.push_back(tensor);
  };
  for (const at::Tensor& tensor : carriers.own) add(tensor);
  for (const at::Tensor& tensor : carriers.views) add(tensor);
  for (const at::Tensor& output : outputs) {
    add(output);
    joint.caller_outputs.push_back(index_of.at(output.unsafeGetTensorImpl()));
  }
  for (size_t i = 0; i < added.size(); ++i)
    for (size_t j = 0; !joint.outputs[i].spent.empty() && j < added.size(); ++j)
      if ((j < carriers.own.size() || !joint.outputs[j].spent.empty()) &&
          leads_to(torch::autograd::impl::gradient_edge(added[i]),
                   torch::autograd::impl::gradient_edge(added[j])))
        joint.outputs[i].spent_sources.push_back({false, j});
  joint.views = carriers.views.size();
  joint.forward_inputs = graph.inputs.size();
  joint.first_backward = graph.nodes.next_id();
}

TensorMeta meta_of(const Edge& place) {
  const auto& wanted = place.function->input_metadata(place.input_nr);
  TensorMeta meta;
  meta.dtype = runtime::dtype_from_torch(c10::typeMetaToScalarType(wanted.dtype()));
  meta.device = runtime::device_from_torch(wanted.device());
  for (const c10::SymInt& size : wanted.shape_as_dim_vector())
    meta.sizes.push_back(torch_api::expression_of(size));
  meta.strides = contiguous_strides(meta.sizes);
  return meta;
}

// For each output that has a tangent, and for each join: inputs of the graph.
std::vector<at::Tensor> add_tangents(Session& session, const torch::autograd::edge_list& joins,
                                     Joint& joint) {
  graph::Graph& graph = session.recording.graph;
  std::vector<at::Tensor> tangents;
  for (size_t t = 0; t < joint.with_tangents(); ++t) {
    TensorMeta meta = graph.meta(graph.outputs[t].value);
    meta.storage_offset = 0;
    if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
    tangents.push_back(session.make_tensor(graph.add_input(std::move(meta)), false));
  }
  for (const Edge& join : joins)
    tangents.push_back(session.make_tensor(graph.add_input(meta_of(join)), false));
  return tangents;
}

// What a backward pass through all places with tangents gives.
struct Gradients {
  std::vector<at::Tensor> leaves;  // undefined where nothing flows
  std::vector<at::Tensor> places;  // likewise; defined only for places behind places of other parts
};

// Notes what comes into an input of a node.
class NotingHook final : public torch::autograd::FunctionPreHook {
 public:
  NotingHook(at::Tensor& total, uint32_t input) : total_(total), input_(input) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    total_ = gradients[input_];
    return gradients;
  }

 private:
  at::Tensor& total_;
  uint32_t input_;
};

Gradients run_backward(const torch::autograd::edge_list& roots, const std::vector<at::Tensor>& tangents,
                       const torch::autograd::edge_list& leaves, const SeparateBackward& separate) {
  Gradients gradients{std::vector<at::Tensor>(leaves.size()), std::vector<at::Tensor>(roots.size())};
  if (roots.empty() || leaves.empty()) return gradients;
  for (size_t u = 0; u < roots.size(); ++u)
    if (std::ranges::any_of(separate.places, [&](const auto& place) { return place.behind[u]; }))
      roots[u].function->add_tensor_pre_hook(
          std::make_unique<NotingHook>(gradients.places[u], roots[u].input_nr));
  const runtime::WithoutAutocast without_autocast;
  gradients.leaves = run_engine(roots, tangents, leaves, {});
  return gradients;
}

// What the program's own code in the backward pass, a hook or a torch.autograd.Function, was the first to
// read is an input of the forward pass, too: it comes before the tangents, as the session counts its inputs.
void move_tangents_behind(std::vector<ValueId>& inputs, size_t tangents, Joint& joint) {
  const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(joint.forward_inputs);
  const auto late = std::rotate(first, first + static_cast<std::ptrdiff_t>(tangents), inputs.end());
  joint.forward_inputs += static_cast<size_t>(late - first);
}

// Those of the first `inputs` inputs that require grad come first, whether anything flows into them or not.
void add_gradients(Session& session, size_t inputs, const Gradients& values, const SeparateBackward& separate,
                   Joint& joint) {
  const auto add = [&](const at::Tensor& value, Gradient gradient) {
    if (value.defined()) {
      gradient.output = static_cast<int32_t>(session.recording.graph.outputs.size());
      gradient.is_zero_tensor = value._is_zerotensor();
      session.add_output(value);
    }
    joint.gradients.push_back(std::move(gradient));
  };
  size_t leaf = 0;
  for (size_t i = 0; i < inputs; ++i) {
    if (!session.inputs[i].requires_grad()) continue;
    Gradient gradient{.input = static_cast<int32_t>(i)};
    for (const SeparateBackward::Place& place : separate.places) {
      gradient.tangents.push_back(place.flows[leaf]);
      gradient.tangents_of_part.push_back(place.flows_of_part[leaf]);
    }
    add(values.leaves[leaf++], std::move(gradient));
  }
  for (size_t u = 0; u < joint.tangents.size(); ++u) {
    if (!values.places[u].defined()) continue;
    Gradient gradient{.result = static_cast<int32_t>(u)};
    gradient.tangents.assign(joint.tangents.size(), false);
    for (const SeparateBackward::Place& place : separate.places)
      gradient.tangents_of_part.push_back(place.behind[u]);
    add(values.places[u], std::move(gradient));
  }
}

// Nodes that run the program's own code are not made anew by running its operators.
std::string why_not_again(const torch::autograd::edge_list& roots) {
  for (torch::autograd::Node* reached : reached_from(roots)) {
    torch::autograd::Node& node = *reached;
    if (dynamic_cast<ProgramNode*>(&node) != nullptr) return "it calls a torch.autograd.Function";
    const bool is_end = dynamic_cast<torch::autograd::AccumulateGrad*>(&node) != nullptr ||
                        dynamic_cast<torch::autograd::Error*>(&node) != nullptr;
    if (!is_end && has_hooks(node)) return "it has hooks of gradients";
  }
  return "";
}

// The formula of an operator of the program's calls the operator with gradients off.
void note_formulas(Session& session) {
  for (const auto& [node, result] : session.opaque_results)
    if (result.requires_grad()) session.recording.histories.at(node).grad_mode = true;
  session.opaque_results.clear();
}

}  // namespace

namespace {

Joint record_backward(Session& session, const std::vector<at::Tensor>& outputs) {
  Joint joint;
  const ViewStates states(outputs);
  note_formulas(session);
  Carriers carriers = carriers_of(session, outputs, states);
  const torch::autograd::edge_list leaves = leaves_of(session);
  const torch::autograd::edge_list own = edges_of(carriers.own);
  check_nothing_else_is_noticed(own, leaves);
  check_views_are_plain(outputs, states, own, leaves);
  carriers.views = views_between(outputs, states, carriers);
  SeparateBackward separate = separate_backward(edges_of(with_tangents(carriers)), leaves);
  if (!are_parts_of_their_own(carriers, separate)) {
    carriers.views.clear();
    separate = separate_backward(own, leaves);
  }
  check_results_come_from_leaves(separate, carriers.own.size());
  for (const SeparateBackward::Place& place : separate.places) joint.tangents.push_back(place.tangent);
  joint.joins = separate.joins.size();
  joint.made = separate.made;
  add_outputs(session, outputs, states, carriers, joint);
  const std::vector<at::Tensor> tangents = add_tangents(session, separate.joins, joint);
  torch::autograd::edge_list roots = edges_of(with_tangents(carriers));
  roots.insert(roots.end(), separate.joins.begin(), separate.joins.end());
  joint.why_not_again = why_not_again(own);
  const size_t inputs = session.inputs.size();
  const Gradients gradients = run_backward(roots, tangents, leaves, separate);
  move_tangents_behind(session.recording.graph.inputs, tangents.size(), joint);
  add_gradients(session, inputs, gradients, separate, joint);
  note_what_autograd_keeps(session.recording, joint);
  return joint;
}

}  // namespace

DifferentiableRecording finish_with_backward(trace::Recorder& recorder,
                                             const std::vector<PyObject*>& outputs) {
  DifferentiableRecording result;
  result.recording = recorder.finish(outputs, [&](Session& session, const std::vector<at::Tensor>& tensors) {
    result.joint = record_backward(session, tensors);
    return result.joint.first_backward;
  });
  return result;
}

}  // namespace oxy::autograd
