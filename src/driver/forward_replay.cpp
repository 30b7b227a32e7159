#include "driver/forward_replay.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "base/error.h"
#include "graph/storage.h"
#include "runtime/convert.h"
#include "runtime/interpreter.h"

namespace oxy::driver {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

size_t at(ValueId id) {
  return static_cast<size_t>(id);
}

// It writes its running statistics and reads nothing of them.
bool trains_statistics(const Node& node) {
  if (!node.op->name.starts_with("aten::_native_batch_norm_legit")) return false;
  const auto training = std::ranges::find(node.op->arguments, "training", &ArgumentInfo::name);
  if (training == node.op->arguments.end()) return false;
  const auto* value =
      std::get_if<bool>(&node.args[static_cast<size_t>(training - node.op->arguments.begin())]);
  return value != nullptr && *value;
}

at::Tensor statistics_like(const TensorMeta& meta) {
  std::vector<int64_t> sizes;
  for (const Expr& size : meta.sizes) sizes.push_back(size.constant());
  return at::zeros(sizes, runtime::dtype_to_torch(meta.dtype));
}

// Calls fn(value) for each tensor that the node writes to.
template <typename Function>
void for_each_written(const Node& node, const Function& fn) {
  for (size_t i = 0; i < node.args.size(); ++i)
    if (node.op->arguments[i].is_written)
      if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[i])) fn(ref->id);
}

// What a slice is found with, backwards from its results.
class Search {
 public:
  Search(const graph::Graph& graph, const std::vector<ValueId>& storage, const std::vector<bool>& is_end)
      : graph_(graph),
        storage_(storage),
        is_end_(is_end),
        is_read_(graph.values.size()),
        is_storage_read_(graph.values.size()) {}

  void read(ValueId id) {
    is_read_[at(id)] = true;
    if (!is_end_[at(id)]) is_storage_read_[at(storage_[at(id)])] = true;
  }

  bool is_read(ValueId id) const { return is_read_[at(id)]; }

  bool needs(const Node& node) const {
    bool needed = std::ranges::any_of(
        node.outputs, [&](ValueId id) { return id != kNoValue && is_read(id) && !is_end_[at(id)]; });
    if (node.op->is_mutating())
      for_each_written(node, [&](ValueId id) { needed |= is_storage_read_[at(storage_[at(id)])]; });
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
  const graph::Graph& graph_;
  const std::vector<ValueId>& storage_;
  const std::vector<bool>& is_end_;  // by value: it is not made again
  std::vector<bool> is_read_, is_storage_read_;
};

}  // namespace

ForwardReplay::ForwardReplay(graph::Graph recorded, std::vector<trace::NodeHistory> histories,
                             std::vector<at::Tensor> constants, const trace::Joint& joint)
    : graph_(std::move(recorded)), histories_(std::move(histories)), constants_(std::move(constants)) {
  inputs_ = joint.forward_inputs;
  graph_.nodes.resize(joint.forward_nodes);
  histories_.resize(joint.forward_nodes);
  storage_ = graph::storage_roots(graph_);
  writes_ = std::ranges::any_of(graph_.nodes, [](const Node& node) { return node.op->is_mutating(); });
}

ForwardReplay::Slice ForwardReplay::slice(const std::vector<size_t>& tangents,
                                          const std::vector<size_t>& gradients,
                                          const trace::Joint& joint) const {
  Slice slice;
  const auto refuse = [&](std::string why) {
    slice.why_not = std::move(why);
    return slice;
  };
  if (!joint.why_not_again.empty()) return refuse(joint.why_not_again);
  const size_t results = joint.tangents - joint.joins;
  const auto is_join = [&](size_t place) { return place >= results; };
  bool has_joins = std::ranges::any_of(tangents, is_join);
  for (const size_t g : gradients)
    has_joins |= joint.gradients[g].result >= 0 && is_join(static_cast<size_t>(joint.gradients[g].result));
  if (has_joins) return refuse("its results share a part of their history");

  std::vector<bool> is_end(graph_.values.size()), is_input(graph_.values.size());
  for (size_t i = 0; i < inputs_; ++i) is_end[at(graph_.inputs[i])] = is_input[at(graph_.inputs[i])] = true;
  std::vector<size_t> others;
  for (size_t t = 0; t < results; ++t)
    if (std::ranges::find(tangents, t) == tangents.end()) others.push_back(t);
  std::vector<bool> is_of_others(graph_.values.size());  // by first value of a storage
  for (const size_t t : others) {
    const ValueId id = graph_.outputs[t].value;
    is_end[at(id)] = is_of_others[at(storage_[at(id)])] = true;
  }

  Search search(graph_, storage_, is_end);
  for (const size_t t : tangents) {
    slice.roots.push_back(t);
    search.read(graph_.outputs[t].value);
  }
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const Node& node = graph_.nodes[n];
    if (!search.needs(node)) continue;
    if (node.op->is_random) return refuse(fmt::format("{} draws random numbers", node.op->name));
    slice.nodes.push_back(n);
    search.take(node);
  }
  std::ranges::reverse(slice.nodes);
  for (const Node& node : graph_.nodes) {
    if (!node.op->is_mutating()) continue;
    bool writes_argument = false, writes_result = false;
    for_each_written(node, [&](ValueId id) {
      const ValueId root = storage_[at(id)];
      writes_argument |= is_input[at(root)] && search.is_read(root);
      writes_result |= is_of_others[at(root)];
    });
    if (writes_argument) return refuse(fmt::format("{} writes to an argument", node.op->name));
    if (writes_result) return refuse(fmt::format("{} writes to one of several results", node.op->name));
  }

  std::vector<std::optional<size_t>> place_of(graph_.values.size());
  for (size_t i = 0; i < inputs_; ++i) {
    if (!search.is_read(graph_.inputs[i])) continue;
    place_of[at(graph_.inputs[i])] = slice.inputs.size();
    slice.inputs.push_back(i);
  }
  for (const size_t t : others) {
    const ValueId id = graph_.outputs[t].value;
    if (!search.is_read(id)) continue;
    place_of[at(id)] = slice.inputs.size() + slice.results.size();
    slice.results.push_back(t);
  }
  for (const size_t g : gradients) {
    const trace::Joint::Gradient& gradient = joint.gradients[g];
    const ValueId id = gradient.result < 0 ? graph_.inputs[static_cast<size_t>(gradient.input)]
                                           : graph_.outputs[static_cast<size_t>(gradient.result)].value;
    slice.ends.push_back(place_of[at(id)]);
  }
  return slice;
}

std::vector<at::Tensor> ForwardReplay::gradients(const Slice& slice, std::span<const at::Tensor> kept,
                                                 std::span<const at::Tensor> tangents,
                                                 const std::vector<bool>& wanted) const {
  // The casts of autocast are nodes of the graph.
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
  std::vector<at::Tensor> values(graph_.values.size());
  std::vector<at::Tensor> ends;
  // A place of its own for what comes in: gradients go no further than that.
  for (size_t k = 0; k < kept.size(); ++k) {
    const ValueId id = k < slice.inputs.size() ? graph_.inputs[slice.inputs[k]]
                                               : graph_.outputs[slice.results[k - slice.inputs.size()]].value;
    const at::AutoGradMode mode(true);
    ends.push_back(kept[k].requires_grad() ? at::alias(kept[k]) : kept[k]);
    values[at(id)] = ends.back();
  }
  for (const graph::Constant& constant : graph_.constants) {
    const at::Tensor& data = constants_[static_cast<size_t>(constant.handle)];
    values[at(constant.value)] = writes_ ? data.clone() : data;
  }
  for (const size_t n : slice.nodes) {
    const Node& node = graph_.nodes[n];
    const trace::NodeHistory& history = histories_[n];
    const at::AutoGradMode mode(history.is_recorded);
    const bool trains = trains_statistics(node);
    size_t read = 0;
    const std::vector<at::Tensor> results = runtime::run_node(node, [&](ValueId id) {
      const at::Tensor& value = values[at(id)];
      const bool requires_grad = history.is_recorded && history.requires_grad.at(read++);
      if (trains && !value.defined()) return statistics_like(graph_.meta(id));
      return value.requires_grad() && !requires_grad ? value.detach() : value;
    });
    check(results.size() == node.outputs.size(), "an operator has another number of results than recorded");
    for (size_t i = 0; i < results.size(); ++i)
      if (const ValueId id = node.outputs[i]; id != kNoValue && !values[at(id)].defined())
        values[at(id)] = results[i];
  }

  std::vector<at::Tensor> roots, flowing, targets;
  for (size_t t = 0; t < tangents.size(); ++t) {
    if (!tangents[t].defined()) continue;
    const at::Tensor& root = values[at(graph_.outputs[slice.roots[t]].value)];
    check(root.requires_grad(), "a result that is computed again has no history");
    roots.push_back(root);
    flowing.push_back(tangents[t]);
  }
  std::vector<size_t> places;
  for (size_t g = 0; g < slice.ends.size(); ++g) {
    if (!wanted[g] || !slice.ends[g]) continue;
    places.push_back(g);
    targets.push_back(ends[*slice.ends[g]]);
  }
  std::vector<at::Tensor> gradients(slice.ends.size());
  if (roots.empty() || targets.empty()) return gradients;
  const auto found = torch::autograd::grad(roots, targets, flowing, true, true, true);
  for (size_t i = 0; i < places.size(); ++i) gradients[places[i]] = found[i];
  return gradients;
}

}  // namespace oxy::driver
