#include "passes/pack_convolution.h"

#include "passes/fold_constants.h"
#include "passes/operators.h"

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

struct Match {
  int32_t node = -1;
  Epilogue epilogue;

  int32_t last() const { return epilogue.absorbed.empty() ? node : epilogue.absorbed.back(); }
};

ValueId emit_packed(Rewriter& rewriter, const Match& m) {
  const Graph& source = rewriter.source();
  const Node& conv = source.nodes[static_cast<size_t>(m.node)];
  Site site{rewriter.graph(), source, conv, conv};
  Node renamed = rewriter.renamed(conv);
  const std::vector<Argument>& args = renamed.args;
  const TensorMeta& weight = source.meta(tensor_argument(conv, 1));
  ValueId packed =
      site.emit(op::pack_convolution(),
                {args[1], source.meta(tensor_argument(conv, 0)).sizes, args[3], args[4], args[5], args[8]},
                contiguous_meta(weight.dtype, weight.device, weight.sizes));
  Argument residual = graph::None{};
  if (m.epilogue.residual != graph::kNoValue) residual = ValueRef{rewriter.map(m.epilogue.residual)};
  return site.emit(op::packed_convolution(),
                   {args[0], ValueRef{packed}, args[2], args[3], args[4], args[5], args[8],
                    m.epilogue.activation, residual},
                   source.meta(source.nodes[static_cast<size_t>(m.last())].outputs.front()));
}

}  // namespace

std::optional<ConvolutionSite> convolution_site(const Graph& graph, const Node& node,
                                                const std::vector<bool>& is_constant) {
  if (node.op->name != "aten::convolution") return std::nullopt;
  ValueId x = tensor_argument(node, 0);
  ValueId weight = tensor_argument(node, 1);
  const bool* transposed = std::get_if<bool>(&node.args[6]);
  if (x == graph::kNoValue || weight == graph::kNoValue || transposed == nullptr || *transposed)
    return std::nullopt;
  if (!is_constant[static_cast<size_t>(weight)] || is_constant[static_cast<size_t>(x)]) return std::nullopt;
  auto stride = integers(node.args[3]);
  auto padding = integers(node.args[4]);
  auto dilation = integers(node.args[5]);
  auto groups = integer_argument(node, 8);
  if (!stride || !padding || !dilation || !groups) return std::nullopt;
  return ConvolutionSite{graph.meta(x),
                         graph.meta(weight),
                         graph.meta(node.outputs.front()),
                         *stride,
                         *padding,
                         *dilation,
                         *groups,
                         owned_by_graph(graph, weight)};
}

Graph pack_convolution(const Graph& source, const ConvolutionPacking& packing) {
  if (!packing.pays) return source;
  std::vector<bool> is_constant = constant_values(source);
  std::vector<int32_t> readers = only_readers(source);
  std::vector<Match> matches;
  std::vector<int32_t> match_at(source.nodes.size(), -1);  // by the match's last node
  std::vector<bool> is_absorbed(source.nodes.size(), false);
  for (size_t i = 0; i < source.nodes.size(); ++i) {
    auto site = convolution_site(source, source.nodes[i], is_constant);
    if (!site) continue;
    if (!is_channels_last(site->input) || !is_channels_last(site->output) || !packing.pays(*site)) continue;
    Match m{static_cast<int32_t>(i), {}};
    m.epilogue = match_epilogue(source, source.nodes[i].outputs.front(), readers, false, packing.fuses);
    bool taken = false;
    for (int32_t node : m.epilogue.absorbed) taken = taken || is_absorbed[static_cast<size_t>(node)];
    if (taken) m.epilogue = {};
    for (int32_t node : m.epilogue.absorbed) is_absorbed[static_cast<size_t>(node)] = true;
    is_absorbed[i] = true;
    match_at[static_cast<size_t>(m.last())] = static_cast<int32_t>(matches.size());
    matches.push_back(std::move(m));
  }

  Rewriter rewriter(source);
  for (size_t i = 0; i < source.nodes.size(); ++i) {
    const Node& node = source.nodes[i];
    if (match_at[i] >= 0) {
      rewriter.set(node.outputs.front(), emit_packed(rewriter, matches[static_cast<size_t>(match_at[i])]));
    } else if (!is_absorbed[i]) {
      rewriter.keep(rewriter.renamed(node));
    }
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
