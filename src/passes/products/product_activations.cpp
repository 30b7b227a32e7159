#include "passes/products/product_activations.h"

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"
#include "passes/weights/epilogue.h"

namespace oxy::passes {
namespace {

// PyTorch hands the library a bias that is a contiguous row of the product's type and length, and no factors.
bool has_row_as_bias(const Graph& graph, const Node& addmm) {
  const TensorMeta &bias = graph.meta(tensor_argument(addmm, 0)),
                   &product = graph.meta(addmm.outputs.front());
  return bias.rank() == 1 && is_contiguous(bias) && bias.dtype == product.dtype &&
         bias.sizes.front() == product.sizes.back() && number_argument(addmm, 3) == 1.0 &&
         number_argument(addmm, 4) == 1.0;
}

ValueId emit_product(Rewriter& rewriter, const EpilogueMatch& match) {
  const Graph& source = rewriter.source();
  const Node& node = source.nodes[match.node];
  const Node renamed = rewriter.renamed(node);
  const Site site{rewriter.graph(), source, renamed, node};
  std::vector<Argument> arguments = renamed.args;
  arguments.emplace_back(match.epilogue.activation == "gelu_tanh");
  const ValueId product = site.emit(op::addmm_activation(), std::move(arguments), site.meta());
  const TensorMeta& result = source.meta(source.nodes[match.last()].outputs.front());
  if (result.sizes == site.meta().sizes) return product;
  return site.emit(op::view(), {ValueRef{product}, result.sizes}, result);
}

}  // namespace

Graph apply_product_activations(const Graph& source, const ProductAppliesActivation& applies) {
  if (!applies) return source;
  const auto readers = only_readers(source);
  std::vector<EpilogueMatch> matches;
  for (const NodeId id : source.nodes.ids()) {
    const Node& node = source.nodes[id];
    if (node.op != op::addmm() || !has_row_as_bias(source, node)) continue;
    const ValueId product = node.outputs.front();
    const TensorMeta& meta = source.meta(product);
    if (!is_contiguous(meta)) continue;
    EpilogueMatch match{
        id,
        match_epilogue(source, product, readers, true, [&](std::string_view activation, bool with_residual) {
          return !with_residual && activation != "none" && applies(activation, meta.dtype);
        })};
    if (match.epilogue.absorbed.empty()) continue;
    if (is_contiguous(source.meta(source.nodes[match.last()].outputs.front()))) matches.push_back(match);
  }
  if (matches.empty()) return source;
  return replace_matches(source, std::move(matches), emit_product);
}

}  // namespace oxy::passes
