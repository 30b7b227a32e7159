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
      size_t before = site.graph.nodes.size();
      // The rule may ask the new graph for the metadata of the node's outputs.
      Node node = site.node;
      size_t values = site.graph.values.size();
      for (ValueId& id : node.outputs)
        if (id != graph::kNoValue) id = site.graph.add_value(site.source.meta(id));
      std::vector<ValueId> results = decomposition(site.graph, node);
      if (results.empty()) {
        check(site.graph.nodes.size() == before, "a decomposition that does not apply has added nodes");
        site.graph.values.resize(values);
        return std::nullopt;
      }
      for (size_t i = before; i < site.graph.nodes.size(); ++i)
        if (site.graph.nodes[i].location < 0) site.graph.nodes[i].location = site.node.location;
      changed = true;
      return results;
    });
    if (!changed) return current;
    current = std::move(next);
  }
  throw InternalError("decompositions do not come to an end");
}

}  // namespace oxy::passes
