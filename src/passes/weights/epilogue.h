// Operators that a packed linear or convolution applies to its result before it is stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

// What follows a linear or convolution and can be absorbed: `activation(result + residual)`.
struct Epilogue {
  std::string activation = "none";
  ValueId residual;
  std::vector<NodeId> absorbed;  // the nodes, in order; the last one's output is the result
};

// Whether the kernel can apply this activation ("none", "relu", "gelu", "gelu_tanh", "silu", ...), after
// adding a tensor of the result's size and layout if there is a residual. Empty: nothing is absorbed.
using FusesEpilogue = std::function<bool(std::string_view activation, bool with_residual)>;

// The name that packed operators know an activation node by; empty if it is none.
std::string activation_name(const Node& node);

// Follows the only reader of `value` as long as it can be absorbed. `through_views`: views of the whole
// tensor in between are absorbed too. A residual is the other operand of an addition, of equal type and
// sizes.
Epilogue match_epilogue(const Graph& graph, ValueId value, const IdVector<ValueId, NodeId>& only_readers,
                        bool through_views, const FusesEpilogue& fuses);

// A linear or convolution and its epilogue.
struct EpilogueMatch {
  NodeId node;
  Epilogue epilogue;

  NodeId last() const { return epilogue.absorbed.empty() ? node : epilogue.absorbed.back(); }
};

// Replaces every match by the value that `emit(rewriter, match)` returns, in the place of its last node.
// `matches`: EpilogueMatch or derived from it, in the order of their nodes. Where two want the same epilogue,
// as in `linear(x) + linear(y)`, the first has it.
template <class Match, class Emit>
Graph replace_matches(const Graph& source, std::vector<Match> matches, Emit emit) {
  IdVector<NodeId, const Match*> match_at(source.nodes.size(), nullptr);  // by the match's last node
  IdVector<NodeId, bool> is_absorbed(source.nodes.size(), false);
  for (Match& m : matches) {
    const auto taken = [&](NodeId node) { return is_absorbed[node]; };
    if (std::ranges::any_of(m.epilogue.absorbed, taken)) m.epilogue = {};
    for (NodeId node : m.epilogue.absorbed) is_absorbed[node] = true;
    is_absorbed[m.node] = true;
    match_at[m.last()] = &m;
  }
  Rewriter rewriter(source);
  for (const NodeId i : source.nodes.ids()) {
    const Node& node = source.nodes[i];
    if (match_at[i])
      rewriter.set(node.outputs.front(), emit(rewriter, *match_at[i]));
    else if (!is_absorbed[i])
      rewriter.keep(rewriter.renamed(node));
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
