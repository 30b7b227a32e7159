#include "trace/session/written_values.h"

#include <algorithm>

#include "ops/core/registry.h"

namespace oxy::trace {

namespace {

class Search {
 public:
  Search(const graph::Graph& graph, const std::unordered_set<graph::ValueId>& values)
      : graph_(graph), values_(values) {}

  // Whether a value is one of them, or is a view of one.
  bool shares_memory(graph::ValueId value) {
    if (values_.contains(value)) return true;
    if (!seen_.insert(value).second) return false;
    const graph::NodeId producer = graph_.values[value].node;
    if (producer == graph::kNoNode) return false;
    const graph::Node& node = graph_.nodes[producer];
    const bool is_view =
        std::ranges::any_of(node.op->returns, [](const auto& r) { return r.alias_set >= 0; });
    if (!is_view && !ops::traits_of(*node.op).shares_memory) return false;
    bool shares = false;
    graph::for_each_input(node, [&](graph::ValueId input) { shares = shares || shares_memory(input); });
    return shares;
  }

 private:
  const graph::Graph& graph_;
  const std::unordered_set<graph::ValueId>& values_;
  std::unordered_set<graph::ValueId> seen_;
};

}  // namespace

bool is_written(const graph::Graph& graph, const std::unordered_set<graph::ValueId>& values) {
  Search search(graph, values);
  return std::ranges::any_of(graph.nodes, [&](const graph::Node& node) {
    bool written = false;
    if (node.op->is_mutating())
      graph::for_each_input(node,
                            [&](graph::ValueId input) { written = written || search.shares_memory(input); });
    return written;
  });
}

}  // namespace oxy::trace
