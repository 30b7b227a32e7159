#include "passes/simplification/decompose.h"

#include "base/error.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

constexpr int kMaxRounds = 16;  // the longest chain of decompositions into one another

}  // namespace

Graph decompose(const Graph& source) {
  Graph current = source;
  for (int round = 0; round < kMaxRounds; ++round) {
    bool changed = false;
    Graph next = rewrite(current, [&](const Site& site) -> std::optional<std::vector<ValueId>> {
      const ops::Decomposition& decomposition = ops::entry_of(*site.node.op).decompose;
      if (!decomposition) return std::nullopt;
      const NodeId before = site.graph.nodes.next_id();
      // The rule may ask the new graph for the metadata of the node's outputs.
      Node node = site.node;
      size_t values = site.graph.values.size();
      for (ValueId& id : node.outputs.edit())
        if (id != graph::kNoValue) id = site.graph.add_value(site.source.values[id].meta);
      std::vector<ValueId> results = decomposition(site.graph, node);
      if (results.empty()) {
        check(site.graph.nodes.next_id() == before, "a decomposition that does not apply has added nodes");
        site.graph.values.resize(values);
        return std::nullopt;
      }
      for (const NodeId id : site.graph.nodes.ids_from(before))
        if (Node& added = site.graph.nodes[id]; added.location == graph::kNoLocation)
          added.location = site.node.location;
      changed = true;
      return results;
    });
    if (!changed) return current;
    current = std::move(next);
  }
  throw InternalError("decompositions do not come to an end");
}

}  // namespace oxy::passes
