#include "passes/weights/epilogue.h"
#include "aten/operators.h"
#include "ops/core/registry.h"

namespace oxy::passes {
namespace {

// The tensor added to `value`, kNoValue if the node is not such an addition.
ValueId added_tensor(const Graph& graph, const Node& node, ValueId value) {
  if (node.op != op::add() || number_argument(node, 2) != 1.0) return graph::kNoValue;
  ValueId a = tensor_argument(node, 0);
  ValueId b = tensor_argument(node, 1);
  ValueId other = a == value ? b : a;
  if (other == graph::kNoValue || other == value) return graph::kNoValue;
  return same_memory_order(graph.meta(value), graph.meta(other)) ? other : graph::kNoValue;
}

}  // namespace

std::string activation_name(const Node& node) {
  std::string name(ops::traits_of(*node.op).activation);
  if (node.op != op::gelu()) return name;
  const auto* approximate = std::get_if<std::string>(&node.args[1]);
  return approximate != nullptr && *approximate == "tanh" ? name + "_tanh" : name;
}

Epilogue match_epilogue(const Graph& graph, ValueId value, const IdVector<ValueId, NodeId>& only_readers,
                        bool through_views, const FusesEpilogue& fuses) {
  Epilogue found;
  if (!fuses) return found;
  std::vector<NodeId> pending;  // views that are absorbed only if something useful follows
  for (;;) {
    const NodeId reader = only_readers[value];
    if (reader == graph::kNoNode) return found;
    const Node& node = graph.nodes[reader];
    if (node.outputs.size() != 1) return found;
    pending.push_back(reader);
    ValueId next = node.outputs.front();
    if (through_views && node.op == op::view()) {
      value = next;
      continue;
    }
    if (!same_memory_order(graph.meta(next), graph.meta(value))) return found;
    bool has_residual = found.residual != graph::kNoValue;
    ValueId other = has_residual || !fuses("none", true) ? graph::kNoValue : added_tensor(graph, node, value);
    std::string activation = activation_name(node);
    bool is_activation = !activation.empty() && fuses(activation, has_residual);
    if (other == graph::kNoValue && !is_activation) return found;
    found.absorbed.insert(found.absorbed.end(), pending.begin(), pending.end());
    pending.clear();
    if (is_activation) {
      found.activation = activation;
      return found;
    }
    found.residual = other;
    value = next;
  }
}

}  // namespace oxy::passes
