#include "passes/rewriting/storage_reads.h"

#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

// Whether the value is all of the memory that it lies in, and begins where `copy` does.
bool lies_as(const Graph& graph, ValueId value, const TensorMeta& copy) {
  ValueId owner = value;
  for (const Node* node = producer(graph, owner); node != nullptr && node->op->is_view();
       node = producer(graph, owner)) {
    const ValueId base = tensor_argument(*node, 0);
    if (base == graph::kNoValue) break;
    owner = base;
  }
  return graph.meta(value).storage_offset == copy.storage_offset &&
         element_count(graph.meta(owner)) == element_count(graph.meta(value));
}

}  // namespace

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

IdVector<ValueId, bool> values_behind_results(const Graph& graph) {
  IdVector<ValueId, bool> are_behind(graph.values.size());
  for (const graph::Output& output : graph.outputs) {
    const Node* node = producer(graph, output.value);
    while (node != nullptr && node->op->is_view()) {
      const ValueId base = tensor_argument(*node, 0);
      if (base == graph::kNoValue) break;
      are_behind[base] = true;
      node = producer(graph, base);
    }
  }
  return are_behind;
}

bool moves_results(const Site& site, const std::vector<ValueId>& replacements,
                   const IdVector<ValueId, bool>& are_behind_results) {
  for (size_t i = 0; i < site.node.outputs.size(); ++i) {
    const ValueId output = site.node.outputs[i];
    if (output != graph::kNoValue && are_behind_results[output] &&
        !lies_as(site.graph, replacements.at(i), site.meta(i)))
      return true;
  }
  return false;
}

}  // namespace oxy::passes
