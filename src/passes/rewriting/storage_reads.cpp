#include "passes/rewriting/storage_reads.h"

#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

using graph::Graph;
using graph::Node;
using graph::ValueId;

IdVector<ValueId, bool> values_read_as_storage(const Graph& graph) {
  IdVector<ValueId, bool> found(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (!ops::traits_of(*node.op).addresses_storage()) continue;
    ValueId id = tensor_argument(node, 0);
    while (id != graph::kNoValue && !found[id]) {
      found[id] = true;
      const Node* node_of_id = producer(graph, id);
      id = node_of_id != nullptr && is_view_like(*node_of_id->op) ? tensor_argument(*node_of_id, 0)
                                                                  : graph::kNoValue;
    }
  }
  return found;
}

}  // namespace oxy::passes
