#include "graph/storage.h"

#include <algorithm>

namespace oxy::graph {

IdVector<ValueId, ValueId> storage_roots(const Graph& graph, const std::function<bool(NodeId)>& is_apart) {
  IdVector<ValueId, ValueId> root(graph.values.size());
  for (const ValueId id : root.ids()) root[id] = id;
  for (const NodeId n : graph.nodes.ids()) {
    if (is_apart && is_apart(n)) continue;
    const Node& node = graph.nodes[n];
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      const auto& returned = node.op->returns[std::min(r, node.op->returns.size() - 1)];
      if (returned.alias_set < 0 || node.outputs[r] == kNoValue) continue;
      for (size_t a = 0; a < node.args.size(); ++a)
        if (node.op->arguments[a].alias_set == returned.alias_set)
          if (const auto* ref = std::get_if<ValueRef>(&node.args[a])) root[node.outputs[r]] = root[ref->id];
    }
  }
  return root;
}

}  // namespace oxy::graph
