#include "passes/products/product_residuals.h"

#include <utility>

#include "aten/operators.h"
#include "passes/products/row_bias.h"
#include "passes/rewriting/rewrite.h"
#include "passes/weights/epilogue.h"

namespace oxy::passes {
namespace {

bool is_plain_product(const Graph& graph, const Node& node) {
  return node.op == op::mm() || (node.op == op::addmm() && has_row_as_bias(graph, node));
}

// How many nodes and outputs read each value.
IdVector<ValueId, int32_t> reader_counts(const Graph& graph) {
  IdVector<ValueId, int32_t> counts(graph.values.size(), 0);
  IdVector<ValueId, NodeId> last(graph.values.size(), graph::kNoNode);
  for (const NodeId id : graph.nodes.ids())
    graph::for_each_input(graph.nodes[id], [&](ValueId input) {
      if (std::exchange(last[input], id) != id) ++counts[input];
    });
  for (const graph::Output& output : graph.outputs) ++counts[output.value];
  for (const graph::Mutation& mutation : graph.mutations) ++counts[mutation.value];
  return counts;
}

ValueId emit_product(Rewriter& rewriter, const EpilogueMatch& match) {
  const Graph& source = rewriter.source();
  const Node& node = source.nodes[match.node];
  const Node renamed = rewriter.renamed(node);
  if (match.epilogue.absorbed.empty()) {  // another product has the sum
    rewriter.keep(renamed);
    return rewriter.map(node.outputs.front());
  }
  const Site site{rewriter.graph(), source, renamed, node};
  const auto viewed = [&](ValueId value, const TensorMeta& meta, const TensorMeta& wanted) {
    return meta.sizes == wanted.sizes ? value
                                      : site.emit(op::view(), {ValueRef{value}, wanted.sizes}, wanted);
  };
  const TensorMeta& sum = source.meta(source.nodes[match.last()].outputs.front());
  std::vector<Argument> arguments = {
      ValueRef{viewed(rewriter.map(match.epilogue.residual), sum, site.meta())}};
  if (node.op == op::mm()) arguments.emplace_back(graph::None{});
  const size_t operands = node.op == op::mm() ? 2 : 3;
  arguments.insert(arguments.end(), renamed.args.begin(),
                   renamed.args.begin() + static_cast<std::ptrdiff_t>(operands));
  const ValueId product = site.emit(op::residual_product(), std::move(arguments), site.meta());
  return viewed(product, site.meta(), sum);
}

}  // namespace

Graph add_residuals_to_products(const Graph& source, const ProductAddsResidual& adds) {
  if (!adds) return source;
  const auto readers = only_readers(source);
  const auto counts = reader_counts(source);
  std::vector<EpilogueMatch> matches;
  for (const NodeId id : source.nodes.ids()) {
    const Node& node = source.nodes[id];
    if (!is_plain_product(source, node)) continue;
    const ValueId product = node.outputs.front();
    const TensorMeta& meta = source.meta(product);
    if (!is_contiguous(meta) || !adds(meta.dtype, meta.device)) continue;
    EpilogueMatch match{id, match_epilogue(source, product, readers, true,
                                           [](std::string_view activation, bool with_residual) {
                                             return with_residual && activation == "none";
                                           })};
    if (match.epilogue.absorbed.empty()) continue;
    const ValueId sum = source.nodes[match.last()].outputs.front();
    if (counts[sum] > 1 && is_contiguous(source.meta(sum))) matches.push_back(match);
  }
  if (matches.empty()) return source;
  return replace_matches(source, std::move(matches), emit_product);
}

}  // namespace oxy::passes
