#include "passes/training/recompute.h"

#include <algorithm>

#include "passes/rewriting/rewrite.h"
#include "passes/simplification/dead_code.h"
#include "passes/training/joined_recomputation.h"
#include "passes/training/saved_values.h"
#include "passes/training/softmax_rows.h"

namespace oxy::passes {

Graph recompute_for_backward(const Graph& graph, double memory_budget) {
  const Graph source = separate_softmax_rows(graph);
  IdVector<ValueId, bool> depends(source.values.size(), false);  // on a backward pass
  const auto mark = [](IdVector<ValueId, bool>& flags) { return [&flags](ValueId id) { flags[id] = true; }; };
  BackwardPass pass{.inputs = source.inputs, .is_held = IdVector<ValueId, bool>(source.values.size())};
  pass.memory_budget = memory_budget;
  for (const Node& node : source.nodes) {
    bool is_late = source.checkpoint(node) == graph::kInBackwardPass;
    graph::for_each_input(node, [&](ValueId id) { is_late = is_late || depends[id]; });
    pass.is_late.add(is_late);
    pass.is_forward.add(!is_late);
    if (is_late)
      for (const ValueId id : node.outputs)
        if (id != graph::kNoValue) mark(depends)(id);
  }
  std::ranges::for_each(source.inputs, mark(pass.is_held));
  for (const graph::Output& output : source.outputs) mark(pass.is_held)(output.value);
  for (const graph::Mutation& mutation : source.mutations) mark(pass.is_held)(mutation.value);

  IdVector<ValueId, bool> is_kept(source.values.size(), false);
  std::ranges::for_each(choose_saved(source, pass), mark(is_kept));
  Rewriter rewriter(source);
  IdVector<ValueId, ValueId> late(source.values.size(), graph::kNoValue);  // what the backward pass finds
  const auto keep_for_late = [&](ValueId id) { late[id] = rewriter.map(id); };
  std::ranges::for_each(source.inputs, keep_for_late);
  for (const graph::Constant& constant : source.constants) keep_for_late(constant.value);
  IdVector<ValueId, bool> is_there = is_kept;
  std::ranges::for_each(source.inputs, mark(is_there));
  for (const graph::Constant& constant : source.constants) is_there[constant.value] = true;
  for (const NodeId i : joined_order(source, pass.is_late, is_there)) {
    const Node& node = source.nodes[i];
    if (pass.is_late[i])
      append_with_needs(source, node, rewriter.graph(), late);
    else
      rewriter.keep(rewriter.renamed(node));
    for (const ValueId id : node.outputs) {
      if (id == graph::kNoValue) continue;
      if (pass.is_late[i])
        rewriter.set(id, late[id]);
      else if (is_kept[id])
        keep_for_late(id);
    }
  }
  return remove_dead_code(rewriter.finish());
}

}  // namespace oxy::passes
