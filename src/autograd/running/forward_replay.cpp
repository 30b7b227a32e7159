#include "autograd/running/forward_replay.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <mutex>
#include <ranges>

#include "base/error.h"
#include "graph/sizes.h"
#include "graph/storage.h"
#include "ops/core/registry.h"
#include "runtime/device/generators.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensors.h"

namespace oxy::autograd {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

// It writes its running statistics and reads nothing of them.
bool trains_statistics(const Node& node) {
  if (!ops::traits_of(*node.op).writes_unseen) return false;
  const auto training = std::ranges::find(node.op->arguments, "training", &ArgumentInfo::name);
  if (training == node.op->arguments.end()) return false;
  const auto* value =
      std::get_if<bool>(&node.args[static_cast<size_t>(training - node.op->arguments.begin())]);
  return value != nullptr && *value;
}

at::Tensor statistics_like(const TensorMeta& meta, runtime::SymbolValues symbols) {
  return at::zeros(
      runtime::numbers_of(meta.sizes, symbols),
      at::TensorOptions(runtime::dtype_to_torch(meta.dtype)).device(runtime::device_to_torch(meta.device)));
}

// An argument that is written to is copied at each call, in case a gradient is to be differentiated:
// statistics and other buffers, no activations.
bool is_worth_a_copy(const TensorMeta& meta) {
  constexpr int64_t kMostBytes = 1 << 16;
  if (graph::has_symbols(meta)) return false;
  const c10::ScalarType type = runtime::dtype_to_torch(meta.dtype);
  const runtime::TensorSpec spec{type, runtime::constants_of(meta.sizes),
                                 runtime::constants_of(meta.strides)};
  return runtime::bytes_of(spec) <= kMostBytes &&
         spec.element_count() * static_cast<int64_t>(c10::elementSize(type)) == runtime::bytes_of(spec);
}

// Calls fn(value) for each tensor that the node writes to.
template <typename Function>
void for_each_written(const Node& node, const Function& fn) {
  for (size_t i = 0; i < node.args.size(); ++i)
    if (node.op->arguments[i].is_written)
      if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[i])) fn(ref->id);
}

// Joins are no results: nobody has their tensors.
bool meets_joins(const std::vector<size_t>& tangents, const std::vector<size_t>& gradients,
                 const Joint& joint) {
  const auto is_join = [&](size_t place) { return place >= joint.with_tangents(); };
  return std::ranges::any_of(tangents, is_join) || std::ranges::any_of(gradients, [&](size_t g) {
           const int32_t result = joint.gradients[g].result;
           return result >= 0 && is_join(static_cast<size_t>(result));
         });
}

// What a slice is found with, backwards from its results.
class Search {
 public:
  // A result that is taken as it is is not made again.
  Search(const IdVector<ValueId, ValueId>& storage, const IdVector<ValueId, bool>& is_taken)
      : storage_(storage), is_taken_(is_taken), is_read_(storage.size()), is_storage_read_(storage.size()) {}

  void read(ValueId id) {
    is_read_[id] = true;
    if (!is_taken_[id]) is_storage_read_[storage_[id]] = true;
  }

  const IdVector<ValueId, bool>& is_read() const { return is_read_; }

  bool needs(const Node& node) const {
    bool needed = std::ranges::any_of(
        node.outputs, [&](ValueId id) { return id != kNoValue && is_read_[id] && !is_taken_[id]; });
    if (node.op->is_mutating())
      for_each_written(node, [&](ValueId id) { needed |= is_storage_read_[storage_[id]]; });
    return needed;
  }

  void take(const Node& node) {
    const bool trains = trains_statistics(node);
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (trains && node.op->arguments[i].is_written) continue;
      if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[i])) read(ref->id);
      if (const auto* list = std::get_if<graph::ValueList>(&node.args[i]))
        for (const ValueId id : list->ids)
          if (id != kNoValue) read(id);
    }
  }

 private:
  const IdVector<ValueId, ValueId>& storage_;
  const IdVector<ValueId, bool>& is_taken_;
  IdVector<ValueId, bool> is_read_, is_storage_read_;
};

}  // namespace

ForwardReplay::ForwardReplay(graph::Graph recorded, IdVector<graph::NodeId, trace::NodeHistory> histories,
                             std::vector<at::Tensor> constants, const Joint& joint)
    : graph_(std::move(recorded)), histories_(std::move(histories)), constants_(std::move(constants)) {
  inputs_ = joint.forward_inputs;
  graph_.nodes.resize(joint.first_backward.index());
  histories_.resize(joint.first_backward.index());
  storage_ = graph::storage_roots(graph_);
  writes_ = std::ranges::any_of(graph_.nodes, [](const Node& node) { return node.op->is_mutating(); });
}

std::string ForwardReplay::settle_writes(Slice& slice, const IdVector<ValueId, bool>& is_read,
                                         const std::vector<size_t>& others,
                                         const std::vector<ValueId>& ends) const {
  IdVector<ValueId, bool> is_other(graph_.values.size());  // by storage
  for (const size_t t : others) is_other[storage_[graph_.outputs[t].value]] = true;
  std::string problem;
  IdVector<ValueId, bool> is_written(graph_.values.size());
  for (const Node& node : graph_.nodes) {
    if (!node.op->is_mutating()) continue;
    for_each_written(node, [&](ValueId id) {
      const ValueId root = storage_[id];
      is_written[root] = true;
      if (is_other[root]) problem = fmt::format("{} writes to one of several results", node.op->name);
      const bool is_input = std::ranges::find(graph_.inputs, root) != graph_.inputs.end();
      if (!is_input || !is_read[root]) return;
      if (std::ranges::find(ends, root) != ends.end() || !is_worth_a_copy(graph_.meta(root)))
        problem = fmt::format("{} writes to an argument", node.op->name);
    });
  }
  for (const size_t input : slice.inputs) slice.is_copied.push_back(is_written[graph_.inputs[input]]);
  return problem;
}

ForwardReplay::Slice ForwardReplay::slice(const std::vector<size_t>& tangents,
                                          const std::vector<size_t>& gradients, const Joint& joint) const {
  Slice slice;
  const auto refuse = [&](std::string why) {
    slice.why_not = std::move(why);
    return slice;
  };
  if (!joint.why_not_again.empty()) return refuse(joint.why_not_again);
  const size_t results = joint.with_tangents();
  if (meets_joins(tangents, gradients, joint)) return refuse("its results share a part of their history");

  IdVector<ValueId, bool> is_taken(graph_.values.size());
  std::vector<size_t> others;
  for (size_t t = 0; t < results; ++t) {
    if (std::ranges::find(tangents, t) != tangents.end()) continue;
    others.push_back(t);
    is_taken[graph_.outputs[t].value] = true;
  }

  Search search(storage_, is_taken);
  for (const size_t t : tangents) search.read(graph_.outputs[t].value);
  for (const graph::NodeId n : graph_.nodes.ids() | std::views::reverse) {
    const Node& node = graph_.nodes[n];
    // What is drawn depends on all that was drawn before.
    if (!search.needs(node) && !(!slice.random_devices.empty() && draws_numbers(*node.op, node.args)))
      continue;
    if (draws_numbers(*node.op, node.args)) slice.random_devices = runtime::random_devices(graph_);
    slice.nodes.push_back(n);
    search.take(node);
  }
  std::ranges::reverse(slice.nodes);
  slice.roots = tangents;

  IdVector<ValueId, std::optional<size_t>> place_of(graph_.values.size());
  const auto keep = [&](ValueId id, size_t number, std::vector<size_t>& kept) {
    if (!search.is_read()[id]) return;
    place_of[id] = slice.inputs.size() + slice.results.size();
    kept.push_back(number);
  };
  for (size_t i = 0; i < inputs_; ++i) keep(graph_.inputs[i], i, slice.inputs);
  for (const size_t t : others) keep(graph_.outputs[t].value, t, slice.results);
  std::vector<ValueId> ends;
  for (const size_t g : gradients) {
    const Gradient& gradient = joint.gradients[g];
    ends.push_back(gradient.result < 0 ? graph_.inputs[static_cast<size_t>(gradient.input)]
                                       : graph_.outputs[static_cast<size_t>(gradient.result)].value);
    slice.ends.push_back(place_of[ends.back()]);
  }
  if (std::string problem = settle_writes(slice, search.is_read(), others, ends); !problem.empty())
    return refuse(std::move(problem));
  return slice;
}

ForwardReplay::Values ForwardReplay::run(const Slice& slice, std::span<const at::Tensor> kept,
                                         runtime::SymbolValues symbols) const {
  const size_t states = slice.random_devices.size();
  const runtime::WithGeneratorStates as_before(slice.random_devices, kept.last(states));
  kept = kept.first(kept.size() - states);
  // The casts of autocast are nodes of the graph.
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
  // Only gradients may be batched.
  const c10::impl::ExcludeDispatchKeyGuard without_transforms(c10::DispatchKeySet(
      {c10::DispatchKey::VmapMode, c10::DispatchKey::FuncTorchVmapMode,
       c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode}));
  Values made;
  IdVector<ValueId, at::Tensor>& values = made.by_id;
  values.resize(graph_.values.size());
  for (size_t k = 0; k < kept.size(); ++k) {
    const ValueId id = k < slice.inputs.size() ? graph_.inputs[slice.inputs[k]]
                                               : graph_.outputs[slice.results[k - slice.inputs.size()]].value;
    const at::AutoGradMode mode(true);
    const bool is_copied = k < slice.inputs.size() && slice.is_copied[k];
    made.ends.push_back(is_copied ? kept[k].clone() : kept[k].requires_grad() ? at::alias(kept[k]) : kept[k]);
    values[id] = made.ends.back();
  }
  for (const graph::Constant& constant : graph_.constants) {
    const at::Tensor& data = constants_[static_cast<size_t>(constant.handle)];
    values[constant.value] = writes_ ? data.clone() : data;
  }
  for (const graph::NodeId n : slice.nodes) {
    const Node& node = graph_.nodes[n];
    const trace::NodeHistory& history = histories_[n];
    const at::AutoGradMode mode(history.grad_mode);
    size_t read = 0;
    const std::vector<at::Tensor> results = runtime::run_node(
        node,
        [&](ValueId id) {
          const at::Tensor& value = values[id];
          const bool requires_grad = !history.requires_grad.empty() && history.requires_grad.at(read++);
          if (!value.defined() && trains_statistics(node)) return statistics_like(graph_.meta(id), symbols);
          return value.requires_grad() && !requires_grad ? value.detach() : value;
        },
        symbols);
    check(results.size() == node.outputs.size(), "an operator has another number of results than recorded");
    for (size_t i = 0; i < results.size(); ++i)
      if (const ValueId id = node.outputs[i]; id != kNoValue && !values[id].defined())
        values[id] = results[i];
  }
  return made;
}

std::vector<at::Tensor> ForwardReplay::gradients(const Slice& slice, std::span<const at::Tensor> kept,
                                                 std::span<const at::Tensor> tangents,
                                                 const std::vector<bool>& wanted, bool create_graph,
                                                 runtime::SymbolValues symbols) const {
  const Values values = run(slice, kept, symbols);
  std::vector<at::Tensor> roots, flowing, targets;
  for (size_t t = 0; t < tangents.size(); ++t) {
    if (!tangents[t].defined()) continue;
    const at::Tensor& root = values.by_id[graph_.outputs[slice.roots[t]].value];
    check(root.requires_grad(), "a result that is computed again has no history");
    roots.push_back(root);
    flowing.push_back(tangents[t]);
  }
  std::vector<size_t> places;
  for (size_t g = 0; g < slice.ends.size(); ++g) {
    if (!wanted[g] || !slice.ends[g]) continue;
    places.push_back(g);
    targets.push_back(values.ends[*slice.ends[g]]);
  }
  std::vector<at::Tensor> gradients(slice.ends.size());
  if (roots.empty() || targets.empty()) return gradients;
  const auto found = torch::autograd::grad(roots, targets, flowing, create_graph, create_graph, true);
  for (size_t i = 0; i < places.size(); ++i) gradients[places[i]] = found[i];
  return gradients;
}

}  // namespace oxy::autograd
