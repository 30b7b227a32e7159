#include "passes/simplification/dead_code.h"

#include <algorithm>
#include <ranges>

#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

namespace {

struct Liveness {
  IdVector<ValueId, bool> values;
  IdVector<NodeId, bool> nodes;
};

Liveness liveness_of(const Graph& graph) {
  Liveness live{IdVector<ValueId, bool>(graph.values.size(), false),
                IdVector<NodeId, bool>(graph.nodes.size(), false)};
  auto mark = [&](ValueId id) { live.values[id] = true; };
  for (ValueId id : graph.inputs) mark(id);
  for (const graph::Output& output : graph.outputs) mark(output.value);
  for (const graph::Mutation& mutation : graph.mutations) mark(mutation.value);
  for (const NodeId i : graph.nodes.ids() | std::views::reverse) {
    const Node& node = graph.nodes[i];
    bool is_read = false;
    for (ValueId id : node.outputs) is_read = is_read || (id != graph::kNoValue && live.values[id]);
    if (!is_read && !has_effect(node) && !ops::may_raise(graph, node)) continue;
    live.nodes[i] = true;
    graph::for_each_input(node, mark);
  }
  return live;
}

}  // namespace

bool has_dead_code(const Graph& graph) {
  const Liveness live = liveness_of(graph);
  const auto is_dead = [&](const graph::Constant& constant) { return !live.values[constant.value]; };
  return std::ranges::any_of(graph.constants, is_dead) ||
         std::ranges::any_of(graph.nodes.ids(), [&](NodeId id) { return !live.nodes[id]; });
}

Graph remove_dead_code(const Graph& source) {
  const Liveness live = liveness_of(source);
  Rewriter rewriter(source);
  Graph& out = rewriter.graph();
  // Constants are the values that follow the inputs: number the live ones again.
  out.values.resize(source.inputs.size());
  out.constants.clear();
  for (const graph::Constant& constant : source.constants) {
    bool is_live = live.values[constant.value];
    rewriter.set(constant.value, is_live
                                     ? out.add_constant(source.values[constant.value].meta, constant.handle)
                                     : graph::kNoValue);
  }
  for (const NodeId i : source.nodes.ids())
    if (live.nodes[i]) rewriter.keep(rewriter.renamed(source.nodes[i]));
  return rewriter.finish();
}

}  // namespace oxy::passes
