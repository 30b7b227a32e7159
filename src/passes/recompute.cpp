#include "passes/recompute.h"

#include <algorithm>

#include "passes/dead_code.h"
#include "passes/rewrite.h"
#include "passes/saved_values.h"

namespace oxy::passes {
namespace {

// The values that a backward pass reads in the place of those of the forward pass.
class Again {
 public:
  // `is_there`: by value of the source, whether the backward pass finds it where it was computed first.
  Again(Rewriter& rewriter, std::vector<bool> is_there)
      : rewriter_(rewriter),
        is_there_(std::move(is_there)),
        again_(rewriter.source().values.size(), graph::kNoValue) {}

  // Of the source to one of the new graph. Computes it, and what it is computed from, unless that was done.
  ValueId value(ValueId wanted) {
    std::vector<ValueId> stack = {wanted};
    while (!stack.empty()) {
      const ValueId id = stack.back();
      const Node* node = producer(rewriter_.source(), id);
      if (found(id) != graph::kNoValue) {
        stack.pop_back();
      } else if (node == nullptr || is_there_[static_cast<size_t>(id)]) {
        again_[static_cast<size_t>(id)] = rewriter_.map(id);
        stack.pop_back();
      } else {
        const size_t before = stack.size();
        graph::for_each_input(*node, [&](ValueId input) {
          if (found(input) == graph::kNoValue) stack.push_back(input);
        });
        if (stack.size() == before) append(*node);
      }
    }
    return found(wanted);
  }

 private:
  ValueId found(ValueId id) const { return again_[static_cast<size_t>(id)]; }

  void append(const Node& node) {
    Node copy = node;
    graph::for_each_input(copy, [&](ValueId& id) { id = found(id); });
    Graph& graph = rewriter_.graph();
    const auto index = static_cast<int32_t>(graph.nodes.size());
    for (ValueId& id : copy.outputs) {
      if (id == graph::kNoValue) continue;
      const ValueId fresh = graph.add_value(rewriter_.source().meta(id));
      graph.values.back().node = index;
      again_[static_cast<size_t>(id)] = fresh;
      id = fresh;
    }
    graph.nodes.push_back(std::move(copy));
  }

  Rewriter& rewriter_;
  std::vector<bool> is_there_;
  std::vector<ValueId> again_;
};

}  // namespace

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

  std::vector<bool> is_there = std::move(depends);
  for (const ValueId id : choose_saved(source, pass)) mark(is_there)(id);
  Rewriter rewriter(source);
  Again again(rewriter, std::move(is_there));
  for (size_t i = 0; i < source.nodes.size(); ++i) {
    const Node& node = source.nodes[i];
    if (!pass.is_late[i]) {
      rewriter.keep(rewriter.renamed(node));
      continue;
    }
    Node copy = node;
    graph::for_each_input(copy, [&](ValueId& id) { id = again.value(id); });
    rewriter.keep(copy);
  }
  return remove_dead_code(rewriter.finish());
}

}  // namespace oxy::passes
