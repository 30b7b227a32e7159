#include "passes/simplification/accumulate_embeddings.h"

#include <algorithm>
#include <utility>

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq), where every row counts and counts
// once.
bool is_plain_gradient(const Node& node) {
  return node.op == op::embedding_gradient() && integer_argument(node, 3).value_or(0) < 0 &&
         std::get_if<bool>(&node.args[4]) && !std::get<bool>(node.args[4]);
}

// In place: a row may come up more than once.
bool kernels_add(DType type) {
  return type == DType::Float32 || type == DType::Float64;
}

}  // namespace

Graph accumulate_embeddings(const Graph& source) {
  if (std::ranges::none_of(source.nodes, is_plain_gradient)) return source;
  const auto uses = use_counts(source);
  // By node: which of its arguments is such a gradient; and the gradients that are accumulated where they are
  // added.
  IdVector<NodeId, int> added(source.nodes.size(), -1);
  IdVector<NodeId, bool> is_absorbed(source.nodes.size(), false);
  for (const NodeId i : source.nodes.ids()) {
    const Node& node = source.nodes[i];
    if (node.op != op::add() || number_argument(node, 2) != 1.0) continue;
    for (const int place : {1, 0}) {
      const ValueId gradient = tensor_argument(node, static_cast<size_t>(place)),
                    sum = tensor_argument(node, static_cast<size_t>(1 - place));
      if (gradient == graph::kNoValue || sum == graph::kNoValue || uses[gradient] != 1) continue;
      const NodeId made = source.values[gradient].node;
      const TensorMeta& result = source.meta(node.outputs.front());
      if (made == graph::kNoNode || !is_plain_gradient(source.nodes[made]) || !kernels_add(result.dtype) ||
          !same_layout(source.meta(sum), result))
        continue;
      added[i] = place;
      is_absorbed[made] = true;
      break;
    }
  }
  Rewriter rewriter(source);
  for (const NodeId i : source.nodes.ids()) {
    const Node& node = source.nodes[i];
    if (is_absorbed[i]) continue;
    if (added[i] < 0) {
      rewriter.keep(rewriter.renamed(node));
      continue;
    }
    const ValueId sum = rewriter.map(tensor_argument(node, static_cast<size_t>(1 - added[i])));
    const Node gradient =
        rewriter.renamed(*producer(source, tensor_argument(node, static_cast<size_t>(added[i]))));
    const graph::ValueList indices{{tensor_argument(gradient, 1)}};
    Node accumulated{
        op::index_put(), {ValueRef{sum}, indices, gradient.args[0], true}, node.outputs, node.location};
    rewriter.keep(std::move(accumulated));
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
