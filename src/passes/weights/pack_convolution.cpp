#include "passes/weights/pack_convolution.h"

#include "aten/operators.h"
#include "passes/weights/constant_part.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

std::optional<std::vector<int64_t>> integers(const Argument& arg) {
  const auto* list = std::get_if<std::vector<Expr>>(&arg);
  if (list == nullptr) return std::nullopt;
  std::vector<int64_t> out;
  for (const Expr& e : *list) {
    if (!e.is_constant()) return std::nullopt;
    out.push_back(e.constant());
  }
  return out;
}

// The packed weight serves inputs of all sizes.
std::vector<Expr> sizes_at_hand(const TensorMeta& meta) {
  std::vector<Expr> sizes;
  for (const Expr& size : meta.sizes) sizes.emplace_back(sym::estimate(size));
  return sizes;
}

ValueId emit_packed(Rewriter& rewriter, const EpilogueMatch& m) {
  const Graph& source = rewriter.source();
  const Node& conv = source.nodes[m.node];
  Site site{rewriter.graph(), source, conv, conv};
  Node renamed = rewriter.renamed(conv);
  const std::vector<Argument>& args = renamed.args;
  const TensorMeta& weight = source.meta(tensor_argument(conv, 1));
  ValueId packed = site.emit(
      op::pack_convolution(),
      {args[1], sizes_at_hand(source.meta(tensor_argument(conv, 0))), args[3], args[4], args[5], args[8]},
      contiguous_meta(weight.dtype, weight.device, weight.sizes));
  Argument residual = graph::None{};
  if (m.epilogue.residual != graph::kNoValue) residual = ValueRef{rewriter.map(m.epilogue.residual)};
  return site.emit(op::packed_convolution(),
                   {args[0], ValueRef{packed}, args[2], args[3], args[4], args[5], args[8],
                    m.epilogue.activation, residual},
                   source.meta(source.nodes[m.last()].outputs.front()));
}

}  // namespace

std::optional<ConvolutionSite> convolution_site(const Graph& graph, const Node& node,
                                                const IdVector<ValueId, bool>& is_constant) {
  const bool is_backward = node.op == op::convolution_backward();
  if (!is_backward && node.op != op::convolution()) return std::nullopt;
  const size_t shift = is_backward ? 1 : 0;  // the gradient of the output comes first
  ValueId x = tensor_argument(node, shift);
  ValueId weight = tensor_argument(node, 1 + shift);
  const ValueId output = is_backward ? tensor_argument(node, 0) : node.outputs.front();
  const bool* transposed = std::get_if<bool>(&node.args[6 + shift]);
  if (x == graph::kNoValue || weight == graph::kNoValue || transposed == nullptr || *transposed)
    return std::nullopt;
  if (is_constant[x]) return std::nullopt;
  auto stride = integers(node.args[3 + shift]);
  auto padding = integers(node.args[4 + shift]);
  auto dilation = integers(node.args[5 + shift]);
  auto groups = integer_argument(node, 8 + shift);
  if (!stride || !padding || !dilation || !groups) return std::nullopt;
  return ConvolutionSite{
      graph.meta(x), graph.meta(weight),  graph.meta(output),           *stride, *padding, *dilation, *groups,
      is_backward,   is_constant[weight], owned_by_graph(graph, weight)};
}

Graph pack_convolution(const Graph& source, const ConvolutionPacking& packing) {
  if (!packing.pays) return source;
  const auto is_constant = constant_values(source);
  const auto readers = only_readers(source);
  std::vector<EpilogueMatch> matches;
  for (const NodeId i : source.nodes.ids()) {
    auto site = convolution_site(source, source.nodes[i], is_constant);
    if (!site || site->is_backward || !site->has_constant_weight) continue;
    if (!is_channels_last(site->input) || !is_channels_last(site->output) || !packing.pays(*site)) continue;
    matches.push_back(
        {i, match_epilogue(source, source.nodes[i].outputs.front(), readers, false, packing.fuses)});
  }
  return replace_matches(source, std::move(matches), emit_packed);
}

}  // namespace oxy::passes
