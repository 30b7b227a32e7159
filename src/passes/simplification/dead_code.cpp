#include "passes/simplification/dead_code.h"

#include <ranges>

#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

Graph remove_dead_code(const Graph& source) {
  IdVector<ValueId, bool> live(source.values.size(), false);
  auto mark = [&](ValueId id) { live[id] = true; };
  for (ValueId id : source.inputs) mark(id);
  for (const graph::Output& output : source.outputs) mark(output.value);
  for (const graph::Mutation& mutation : source.mutations) mark(mutation.value);

  IdVector<NodeId, bool> needed(source.nodes.size(), false);
  for (const NodeId i : source.nodes.ids() | std::views::reverse) {
    const Node& node = source.nodes[i];
    bool is_read = false;
    for (ValueId id : node.outputs) is_read = is_read || (id != graph::kNoValue && live[id]);
    if (!is_read && !has_effect(node) && !may_raise(source, node)) continue;
    needed[i] = true;
    graph::for_each_input(node, mark);
  }

  Rewriter rewriter(source);
  Graph& out = rewriter.graph();
  // Constants are the values that follow the inputs: number the live ones again.
  out.values.resize(source.inputs.size());
  out.constants.clear();
  for (const graph::Constant& constant : source.constants) {
    bool is_live = live[constant.value];
    rewriter.set(constant.value,
                 is_live ? out.add_constant(source.meta(constant.value), constant.handle) : graph::kNoValue);
  }
  for (const NodeId i : source.nodes.ids())
    if (needed[i]) rewriter.keep(rewriter.renamed(source.nodes[i]));
  return rewriter.finish();
}

}  // namespace oxy::passes
