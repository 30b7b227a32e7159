#include "passes/training/recompute.h"

#include <algorithm>

#include "passes/rewriting/rewrite.h"
#include "passes/simplification/dead_code.h"
#include "passes/training/saved_values.h"

namespace oxy::passes {

Graph recompute_for_backward(const Graph& source, double memory_budget) {
  std::vector<bool> depends(source.values.size(), false);  // on a backward pass
  const auto mark = [](std::vector<bool>& flags) {
    return [&flags](ValueId id) { flags[static_cast<size_t>(id)] = true; };
  };
  BackwardPass pass{.inputs = source.inputs, .is_held = std::vector<bool>(source.values.size(), false)};
  pass.memory_budget = memory_budget;
  for (const Node& node : source.nodes) {
    bool is_late = source.checkpoint(node) == graph::kInBackwardPass;
    graph::for_each_input(node, [&](ValueId id) { is_late = is_late || depends[static_cast<size_t>(id)]; });
    pass.is_late.push_back(is_late);
    pass.is_forward.push_back(!is_late);
    if (is_late)
      for (const ValueId id : node.outputs)
        if (id != graph::kNoValue) mark(depends)(id);
  }
  std::ranges::for_each(source.inputs, mark(pass.is_held));
  for (const graph::Output& output : source.outputs) mark(pass.is_held)(output.value);
  for (const graph::Mutation& mutation : source.mutations) mark(pass.is_held)(mutation.value);

  std::vector<bool> is_kept(source.values.size(), false);
  std::ranges::for_each(choose_saved(source, pass), mark(is_kept));
  Rewriter rewriter(source);
  std::vector<ValueId> late(source.values.size(), graph::kNoValue);  // what the backward pass finds
  const auto keep_for_late = [&](ValueId id) { late[static_cast<size_t>(id)] = rewriter.map(id); };
  std::ranges::for_each(source.inputs, keep_for_late);
  for (const graph::Constant& constant : source.constants) keep_for_late(constant.value);
  for (size_t i = 0; i < source.nodes.size(); ++i) {
    const Node& node = source.nodes[i];
    if (pass.is_late[i])
      append_with_needs(source, node, rewriter.graph(), late);
    else
      rewriter.keep(rewriter.renamed(node));
    for (const ValueId id : node.outputs) {
      if (id == graph::kNoValue) continue;
      if (pass.is_late[i])
        rewriter.set(id, late[static_cast<size_t>(id)]);
      else if (is_kept[static_cast<size_t>(id)])
        keep_for_late(id);
    }
  }
  return remove_dead_code(rewriter.finish());
}

}  // namespace oxy::passes
