#include "passes/simplification/share_key_heads.h"

#include <utility>

#include "aten/operators.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

constexpr size_t kBatch = 0, kHeads = 1, kCopies = 2, kRank = 4;  // of [batch, heads, copies, rows, width]
constexpr size_t kKey = 1, kValue = 2;                            // arguments

// The node that makes a value for its only reader, if it calls `op`.
const Node* only_maker(const Graph& graph, const IdVector<ValueId, NodeId>& readers, ValueId value,
                       const OperatorSchema* op) {
  const Node* const node = producer(graph, value);
  return node != nullptr && node->op == op && readers[value] != graph::kNoNode ? node : nullptr;
}

// The tensor [batch, heads, 1, rows, width] of which each head is copied for several; none if `copied` is no
// such thing.
ValueId heads_of(const Graph& graph, const IdVector<ValueId, NodeId>& readers, ValueId copied) {
  const Node* const view = only_maker(graph, readers, copied, op::view());
  const Node* const clone =
      view == nullptr ? nullptr : only_maker(graph, readers, tensor_argument(*view, 0), op::clone());
  const Node* const expand =
      clone == nullptr ? nullptr : only_maker(graph, readers, tensor_argument(*clone, 0), op::expand());
  if (expand == nullptr) return graph::kNoValue;
  const std::vector<Expr>& merged = graph.meta(copied).sizes;
  const std::vector<Expr>& wide = graph.meta(expand->outputs.front()).sizes;
  const ValueId heads = tensor_argument(*expand, 0);
  const TensorMeta& meta = graph.meta(heads);
  if (merged.size() != kRank || wide.size() != kRank + 1 || meta.sizes.size() != kRank + 1)
    return graph::kNoValue;
  std::vector<Expr> expected = wide;
  expected[kCopies] = 1;
  const bool is_repeated = meta.sizes == expected && meta.strides.back() == Expr(1);
  const bool is_merged = merged[kBatch] == wide[kBatch] && merged[kHeads] == wide[kHeads] * wide[kCopies] &&
                         merged[2] == wide[3] && merged[3] == wide[4];
  return is_repeated && is_merged ? heads : graph::kNoValue;
}

ValueId without_copies(const Rewriter& rewriter, const Site& site, ValueId heads) {
  TensorMeta meta = rewriter.source().meta(heads);
  meta.sizes.erase(meta.sizes.begin() + kCopies);
  meta.strides.erase(meta.strides.begin() + kCopies);
  return site.emit(op::select(), {ValueRef{rewriter.map(heads)}, Expr(int64_t{kCopies}), Expr(0)}, meta);
}

}  // namespace

Graph share_key_heads(const Graph& source) {
  const auto readers = only_readers(source);
  Rewriter rewriter(source);
  for (const Node& node : source.nodes) {
    Node renamed = rewriter.renamed(node);
    if (ops::traits_of(*node.op).shares_key_heads) {
      const ValueId key = heads_of(source, readers, tensor_argument(node, kKey));
      const ValueId value = heads_of(source, readers, tensor_argument(node, kValue));
      if (key != graph::kNoValue && value != graph::kNoValue &&
          source.meta(key).sizes[kHeads] == source.meta(value).sizes[kHeads]) {
        const Site site{rewriter.graph(), source, renamed, node};
        const ValueId keys = without_copies(rewriter, site, key);
        const ValueId values = without_copies(rewriter, site, value);
        renamed.args.edit()[kKey] = ValueRef{keys};
        renamed.args.edit()[kValue] = ValueRef{values};
      }
    }
    rewriter.keep(std::move(renamed));
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
