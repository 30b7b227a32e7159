#include "passes/weights/pack_linear.h"

#include <unordered_map>

#include "aten/operators.h"
#include "passes/weights/constant_part.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

// Of an mm or addmm.
struct Match : EpilogueMatch {
  ValueId x = graph::kNoValue;
  ValueId weight = graph::kNoValue;  // [in, out]
  ValueId bias = graph::kNoValue;
  LinearSite site;
};

std::optional<Match> match(const Graph& graph, NodeId index, const IdVector<ValueId, bool>& is_constant) {
  const Node& node = graph.nodes[index];
  bool has_bias = node.op == op::addmm();
  if (!has_bias && node.op != op::mm()) return std::nullopt;
  Match m;
  m.node = index;
  m.x = tensor_argument(node, has_bias ? 1 : 0);
  m.weight = tensor_argument(node, has_bias ? 2 : 1);
  if (m.x == graph::kNoValue || m.weight == graph::kNoValue) return std::nullopt;
  if (!is_constant[m.weight] || is_constant[m.x]) return std::nullopt;
  const TensorMeta& weight = graph.meta(m.weight);
  const TensorMeta& out = graph.meta(node.outputs.front());
  if (has_bias) {
    m.bias = tensor_argument(node, 0);
    if (m.bias == graph::kNoValue || number_argument(node, 3) != 1.0 || number_argument(node, 4) != 1.0)
      return std::nullopt;
    const TensorMeta& bias = graph.meta(m.bias);
    if (bias.rank() != 1 || bias.sizes[0] != out.sizes[1] || bias.dtype != out.dtype) return std::nullopt;
  }
  auto in_features = weight.sizes.at(0).as_constant();
  auto out_features = weight.sizes.at(1).as_constant();
  if (!in_features || !out_features || !is_contiguous(out)) return std::nullopt;
  m.site = {weight.dtype,
            weight.device,
            out.sizes[0],
            *in_features,
            *out_features,
            has_bias,
            owned_by_graph(graph, m.weight)};
  return m;
}

// The residual must be read as the matrix that the linear makes, the result as the shape that the rest
// expects.
bool epilogue_is_viewable(const Graph& graph, const Match& m) {
  const Node& last = graph.nodes[m.last()];
  bool result = is_contiguous(graph.meta(last.outputs.front()));
  return result && (m.epilogue.residual == graph::kNoValue || is_contiguous(graph.meta(m.epilogue.residual)));
}

ValueId as_shape(const Site& site, ValueId x, const TensorMeta& meta) {
  if (site.graph.meta(x).sizes == meta.sizes) return x;
  return site.emit(op::view(), {ValueRef{x}, meta.sizes}, meta);
}

ValueId emit_packed(Rewriter& rewriter, const Match& m) {
  const Graph& source = rewriter.source();
  const Node& linear = source.nodes[m.node];
  Site site{rewriter.graph(), source, linear, linear};
  const TensorMeta& matrix = source.meta(linear.outputs.front());
  TensorMeta weight = source.meta(m.weight);  // [in, out] -> [out, in]
  std::swap(weight.sizes.at(0), weight.sizes.at(1));
  std::swap(weight.strides.at(0), weight.strides.at(1));
  ValueId by_row =
      site.emit(op::permute(), {ValueRef{rewriter.map(m.weight)}, std::vector<Expr>{1, 0}}, weight);
  ValueId packed = site.emit(op::pack_linear(), {ValueRef{by_row}, Expr(sym::estimate(m.site.rows))},
                             contiguous_meta(weight.dtype, weight.device, weight.sizes));

  Argument bias = graph::None{};
  if (m.bias != graph::kNoValue) bias = ValueRef{rewriter.map(m.bias)};
  Argument residual = graph::None{};
  if (m.epilogue.residual != graph::kNoValue)
    residual = ValueRef{as_shape(site, rewriter.map(m.epilogue.residual), matrix)};
  ValueId result = site.emit(
      op::packed_linear(),
      {ValueRef{rewriter.map(m.x)}, ValueRef{packed}, bias, m.epilogue.activation, residual}, matrix);
  const Node& last = source.nodes[m.last()];
  return as_shape(site, result, source.meta(last.outputs.front()));
}

}  // namespace

Graph pack_linear(const Graph& source, const LinearPacking& packing) {
  if (!packing.pays) return source;
  const auto is_constant = constant_values(source);
  const auto readers = only_readers(source);
  std::vector<Match> matches;
  for (const NodeId i : source.nodes.ids()) {
    auto m = match(source, i, is_constant);
    if (!m || !packing.pays(m->site)) continue;
    m->epilogue = match_epilogue(source, source.nodes[i].outputs.front(), readers, true, packing.fuses);
    if (!epilogue_is_viewable(source, *m)) m->epilogue = {};
    matches.push_back(std::move(*m));
  }
  return replace_matches(source, std::move(matches), emit_packed);
}

}  // namespace oxy::passes
