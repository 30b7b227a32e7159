#include "passes/training/partition.h"

#include <algorithm>
#include <map>
#include <ranges>

#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/composer.h"
#include "passes/rewriting/rewrite.h"
#include "passes/simplification/dead_code.h"
#include "passes/training/joined_recomputation.h"
#include "passes/training/many_bytes.h"
#include "passes/training/saved_values.h"

namespace oxy::passes {
namespace {

using graph::kNoValue;
using graph::OutputKind;

class Partitioner {
 public:
  Partitioner(const Graph& joint, const JointRoles& roles)
      : joint_(joint),
        roles_(roles),
        depends_(joint.values.size(), false),
        is_constant_(joint.values.size(), false) {
    for (const graph::Constant& constant : joint.constants) is_constant_[constant.value] = true;
    for (size_t i = roles.forward_inputs; i < joint.inputs.size(); ++i) depends_[joint.inputs[i]] = true;
    for (const Node& node : joint.nodes) {
      const bool depends = depends_on_tangent(node);
      for (const ValueId id : node.outputs)
        if (id != kNoValue) depends_[id] = depends;
    }
    for (size_t i = 0; i < roles.forward_outputs; ++i) check_forward(joint.outputs[i].value);
    for (const graph::Mutation& mutation : joint.mutations) check_forward(mutation.value);
  }

  Partition run() {
    find_saved();
    build_backward();
    build_forward();
    return std::move(result_);
  }

 private:
  bool depends_on_tangent(const Node& node) const {
    bool depends = false;
    graph::for_each_input(node, [&](ValueId id) { depends = depends || depends_[id]; });
    return depends;
  }

  // Whether a result of the forward pass needs it.
  IdVector<NodeId, bool> forward_nodes() const {
    IdVector<NodeId, bool> needed(joint_.nodes.size(), false);
    const auto need = [&](ValueId id) {
      if (const NodeId node = joint_.values[id].node; node != graph::kNoNode) needed[node] = true;
    };
    for (size_t i = 0; i < roles_.forward_outputs; ++i) need(joint_.outputs[i].value);
    for (const graph::Mutation& mutation : joint_.mutations) need(mutation.value);
    for (const NodeId i : joint_.nodes.ids() | std::views::reverse)
      if (needed[i]) graph::for_each_input(joint_.nodes[i], need);
    return needed;
  }

  void check_forward(ValueId value) const {
    if (depends_[value]) throw Unsupported("a result of the forward pass depends on a gradient");
  }

  // Of an output that is a tensor of its own.
  bool is_output(size_t i, bool is_kept) const {
    return roles_.keeps_output[i] == is_kept && joint_.outputs[i].kind == OutputKind::Value;
  }

  // Values of which such an output is a view with the same elements in the same order.
  std::map<ValueId, int32_t> viewed_values(bool is_kept) const {
    std::map<ValueId, int32_t> viewed;
    for (size_t i = 0; i < roles_.forward_outputs; ++i) {
      if (!is_output(i, is_kept)) continue;
      ValueId id = joint_.outputs[i].value;
      for (const Node* node = producer(joint_, id); node != nullptr; node = producer(joint_, id)) {
        const bool is_reshaped = ops::traits_of(*node->op).movement == ops::Movement::Reshape;
        const ValueId base = is_reshaped ? tensor_argument(*node, 0) : kNoValue;
        if (base == kNoValue || !is_contiguous(joint_.meta(base)) || !is_contiguous(joint_.meta(id))) break;
        viewed.emplace(base, static_cast<int32_t>(i));
        id = base;
      }
    }
    return viewed;
  }

  bool has_layout_of(ValueId value, ValueId input) const {
    const TensorMeta &a = joint_.meta(value), &b = joint_.meta(input);
    return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
  }

  // Values that the caller keeps anyway, an input in the end what was written to it: input number, or output
  // number as -1 - number.
  std::map<ValueId, int32_t> kept_values() const {
    std::map<ValueId, int32_t> kept;
    for (size_t i = 0; i < roles_.forward_outputs; ++i)
      if (is_output(i, true)) kept.emplace(joint_.outputs[i].value, -1 - static_cast<int32_t>(i));
    std::vector<bool> written(joint_.inputs.size(), false);
    for (const graph::Mutation& mutation : joint_.mutations) {
      const auto i = static_cast<size_t>(mutation.input);
      written[i] = true;
      // What the caller writes there later, before the backward pass, is an error then, as it is in eager.
      if (roles_.keeps_input[i] && has_layout_of(mutation.value, joint_.inputs[i]))
        kept.emplace(mutation.value, mutation.input);
    }
    for (size_t i = 0; i < roles_.forward_inputs; ++i)
      if (roles_.keeps_input[i] && !written[i]) kept.emplace(joint_.inputs[i], static_cast<int32_t>(i));
    return kept;
  }

  // Values that the backward pass can read in the memory of outputs that the caller may write to. It would
  // take more time to share little memory than to copy it.
  std::map<ValueId, int32_t> shared_values() const {
    std::map<ValueId, int32_t> shared = viewed_values(false);
    for (size_t i = 0; i < roles_.forward_outputs; ++i)
      if (is_output(i, false)) shared.emplace(joint_.outputs[i].value, static_cast<int32_t>(i));
    std::erase_if(shared, [&](const auto& item) { return !has_many_bytes(joint_.meta(item.first)); });
    return shared;
  }

  // Whether a node that only the backward pass needs reads it, or a view of it.
  IdVector<ValueId, bool> read_by_backward(const IdVector<NodeId, bool>& is_forward) const {
    IdVector<ValueId, bool> read(joint_.values.size());
    const auto is_read = [&](ValueId id) { return id != kNoValue && read[id]; };
    for (const NodeId i : joint_.nodes.ids() | std::views::reverse) {
      const Node& node = joint_.nodes[i];
      if (!is_forward[i] || (node.op->is_view() && std::ranges::any_of(node.outputs, is_read)))
        graph::for_each_input(node, [&](ValueId id) { read[id] = true; });
    }
    return read;
  }

  void find_saved() {
    const std::map<ValueId, int32_t> kept = kept_values(), viewed = viewed_values(true),
                                     shared = shared_values();
    BackwardPass pass{.is_forward = forward_nodes(),
                      .is_held = IdVector<ValueId, bool>(joint_.values.size())};
    pass.memory_budget = roles_.memory_budget;
    pass.made_once = roles_.made_once;
    for (const Node& node : joint_.nodes) pass.is_late.add(depends_on_tangent(node));
    for (size_t i = 0; i < roles_.forward_inputs; ++i) pass.inputs.push_back(joint_.inputs[i]);
    for (size_t i = roles_.forward_outputs; i < joint_.outputs.size(); ++i)
      pass.wanted.push_back(joint_.outputs[i].value);
    for (const auto& [id, place] : kept) pass.is_held[id] = true;
    for (const auto& [id, output] : viewed) pass.is_held[id] = true;
    pass.is_read_itself = read_by_backward(pass.is_forward);
    for (const ValueId id : joint_.values.ids())
      pass.is_read_itself[id] = pass.is_read_itself[id] && pass.is_held[id];
    // Their memory is there in any case.
    for (const auto& [id, output] : shared) pass.is_held[id] = true;
    for (const ValueId id : passes::choose_saved(joint_, pass)) {
      SavedValue saved;
      if (const auto it = kept.find(id); it != kept.end()) {
        saved = it->second >= 0 ? SavedValue{SavedValue::Kind::Input, it->second}
                                : SavedValue{SavedValue::Kind::Output, -1 - it->second};
      } else if (const auto view = viewed.find(id); view != viewed.end()) {
        saved = {SavedValue::Kind::Output, view->second};
      } else if (const auto place = shared.find(id); place != shared.end()) {
        saved = {SavedValue::Kind::Shared, place->second};
      } else {
        if (!is_non_overlapping_and_dense(joint_.meta(id)))
          throw Unsupported("a tensor whose elements share memory is needed for gradients");
        saved = {SavedValue::Kind::Extra, static_cast<int32_t>(extra_.size())};
        extra_.push_back(id);
      }
      result_.saved.push_back(saved);
      saved_.push_back(id);
    }
  }

  void build_backward() {
    Graph& graph = result_.backward;
    graph.locations = joint_.locations;
    IdVector<ValueId, ValueId> map(joint_.values.size(), kNoValue);
    for (size_t i = 0; i < saved_.size(); ++i) {
      const ValueId id = saved_[i];
      const SavedValue& saved = result_.saved[i];
      const bool is_in_output =
          saved.kind == SavedValue::Kind::Output || saved.kind == SavedValue::Kind::Shared;
      const ValueId own = is_in_output ? joint_.outputs[static_cast<size_t>(saved.index)].value : id;
      TensorMeta meta = joint_.meta(own);
      if (saved.kind == SavedValue::Kind::Input)
        meta.storage_offset = joint_.meta(joint_.inputs[static_cast<size_t>(saved.index)]).storage_offset;
      else if (joint_.values[id].node != graph::kNoNode)
        meta.storage_offset = 0;
      map[own] = graph.add_input(std::move(meta));
    }
    for (size_t i = 0; i < saved_.size(); ++i) {
      const ValueId id = saved_[i];
      if (map[id] != kNoValue) continue;
      const ValueId own = joint_.outputs[static_cast<size_t>(result_.saved[i].index)].value;
      ops::Composer composer(graph, Node{});
      map[id] = composer.call(op::view(), {graph::ValueRef{map[own]}, joint_.meta(id).sizes}).id;
    }
    for (size_t i = roles_.forward_inputs; i < joint_.inputs.size(); ++i)
      map[joint_.inputs[i]] = graph.add_input(joint_.values[joint_.inputs[i]].meta);
    for (const graph::Constant& constant : joint_.constants)
      map[constant.value] = graph.add_constant(joint_.values[constant.value].meta, constant.handle);
    // What is computed again comes right before its first use.
    IdVector<ValueId, bool> is_there(joint_.values.size());
    for (const ValueId id : joint_.values.ids()) is_there[id] = map[id] != kNoValue;
    IdVector<NodeId, bool> is_late;
    for (const Node& node : joint_.nodes) is_late.add(depends_on_tangent(node));
    for (const NodeId i : joined_order(joint_, is_late, is_there))
      if (is_late[i]) append_with_needs(joint_, joint_.nodes[i], graph, map);
    std::map<ValueId, int32_t> output_of;
    for (size_t i = roles_.forward_outputs; i < joint_.outputs.size(); ++i) {
      const ValueId id = joint_.outputs[i].value;
      if (map[id] == kNoValue) append_with_needs(joint_, *producer(joint_, id), graph, map);
      const auto [it, is_new] = output_of.emplace(map[id], static_cast<int32_t>(graph.outputs.size()));
      if (is_new) {
        graph::Output output{.value = it->first};
        for (size_t t = saved_.size(); t < graph.inputs.size(); ++t)
          if (graph.inputs[t] == output.value)
            output = {output.value, OutputKind::InputAlias, static_cast<int32_t>(t)};
        graph.outputs.push_back(output);
      }
      result_.gradients.push_back(it->second);
    }
    graph = remove_dead_code(graph);
  }

  void build_forward() {
    Graph graph;
    graph.locations = joint_.locations;
    IdVector<ValueId, ValueId> map(joint_.values.size(), kNoValue);
    for (size_t i = 0; i < roles_.forward_inputs; ++i)
      map[joint_.inputs[i]] = graph.add_input(joint_.values[joint_.inputs[i]].meta);
    for (const graph::Constant& constant : joint_.constants)
      map[constant.value] = graph.add_constant(joint_.values[constant.value].meta, constant.handle);
    for (const Node& node : joint_.nodes)
      if (!depends_on_tangent(node)) append_with_needs(joint_, node, graph, map);
    for (size_t i = 0; i < roles_.forward_outputs; ++i) {
      graph::Output output = joint_.outputs[i];
      output.value = map[output.value];
      graph.outputs.push_back(output);
    }
    for (const ValueId id : extra_) graph.outputs.push_back({.value = map[id]});
    for (const graph::Mutation& mutation : joint_.mutations)
      graph.mutations.push_back({mutation.input, map[mutation.value], mutation.is_seen});
    result_.forward = remove_dead_code(graph);
  }

  const Graph& joint_;
  const JointRoles& roles_;
  IdVector<ValueId, bool> depends_;
  IdVector<ValueId, bool> is_constant_;
  std::vector<ValueId> saved_;  // of the joint graph, in the order of Partition::saved
  std::vector<ValueId> extra_;
  Partition result_;
};

}  // namespace

Partition partition(const Graph& joint, const JointRoles& roles) {
  return Partitioner(joint, roles).run();
}

}  // namespace oxy::passes
