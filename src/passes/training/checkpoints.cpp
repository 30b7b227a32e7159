#include "passes/training/checkpoints.h"

#include <algorithm>

#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

std::vector<CheckpointRole> checkpoint_roles(const Graph& graph, const std::vector<bool>& is_forward) {
  std::vector<CheckpointRole> roles(graph.values.size(), CheckpointRole::None);
  const bool has_checkpoints = std::ranges::any_of(
      graph.locations, [](const graph::Location& location) { return location.checkpoint > 0; });
  if (!has_checkpoints) return roles;
  std::vector<bool> leaves(graph.values.size(), false);  // its checkpoint
  const auto leave = [&](ValueId id) { leaves[static_cast<size_t>(id)] = true; };
  for (const graph::Output& output : graph.outputs) leave(output.value);
  for (const graph::Mutation& mutation : graph.mutations) leave(mutation.value);
  const auto checkpoint_of = [&](ValueId id) {
    const int32_t node = graph.values[static_cast<size_t>(id)].node;
    return node < 0 ? 0 : graph.checkpoint(graph.nodes[static_cast<size_t>(node)]);
  };
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const int32_t checkpoint = graph.checkpoint(node);
    const bool is_view = node.op->is_view();
    // A view that leaves takes its base along.
    const bool leaves_by_view = is_view && std::ranges::any_of(node.outputs, [&](ValueId id) {
                                  return id != graph::kNoValue && leaves[static_cast<size_t>(id)];
                                });
    if (is_forward[i])
      graph::for_each_input(node, [&](ValueId id) {
        if (leaves_by_view || checkpoint_of(id) != checkpoint) leave(id);
      });
    if (checkpoint <= 0 || is_view || has_effect(node)) continue;
    for (const ValueId id : node.outputs)
      if (id != graph::kNoValue)
        roles[static_cast<size_t>(id)] =
            leaves[static_cast<size_t>(id)] ? CheckpointRole::Result : CheckpointRole::Interior;
  }
  return roles;
}

}  // namespace oxy::passes
