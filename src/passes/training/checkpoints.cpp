#include "passes/training/checkpoints.h"

#include <algorithm>
#include <ranges>

#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

IdVector<ValueId, CheckpointRole> checkpoint_roles(const Graph& graph,
                                                   const IdVector<NodeId, bool>& is_forward) {
  IdVector<ValueId, CheckpointRole> roles(graph.values.size(), CheckpointRole::None);
  const bool has_checkpoints = std::ranges::any_of(
      graph.locations, [](const graph::Location& location) { return location.checkpoint > 0; });
  if (!has_checkpoints) return roles;
  IdVector<ValueId, bool> leaves(graph.values.size(), false);  // its checkpoint
  const auto leave = [&](ValueId id) { leaves[id] = true; };
  for (const graph::Output& output : graph.outputs) leave(output.value);
  for (const graph::Mutation& mutation : graph.mutations) leave(mutation.value);
  const auto checkpoint_of = [&](ValueId id) {
    const NodeId node = graph.values[id].node;
    return node == graph::kNoNode ? 0 : graph.checkpoint(graph.nodes[node]);
  };
  for (const NodeId i : graph.nodes.ids() | std::views::reverse) {
    const Node& node = graph.nodes[i];
    const int32_t checkpoint = graph.checkpoint(node);
    const bool is_view = node.op->is_view();
    // A view that leaves takes its base along.
    const bool leaves_by_view = is_view && std::ranges::any_of(node.outputs, [&](ValueId id) {
                                  return id != graph::kNoValue && leaves[id];
                                });
    if (is_forward[i])
      graph::for_each_input(node, [&](ValueId id) {
        if (leaves_by_view || checkpoint_of(id) != checkpoint) leave(id);
      });
    if (checkpoint <= 0 || is_view || has_effect(node)) continue;
    for (const ValueId id : node.outputs)
      if (id != graph::kNoValue) roles[id] = leaves[id] ? CheckpointRole::Result : CheckpointRole::Interior;
  }
  return roles;
}

}  // namespace oxy::passes
