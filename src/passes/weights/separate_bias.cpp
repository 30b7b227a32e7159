#include "passes/weights/separate_bias.h"

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

graph::Graph separate_bias(const graph::Graph& source) {
  return rewrite(source, [](const Site& site) -> std::optional<std::vector<ValueId>> {
    constexpr size_t kBias = 2;
    if (site.node.op != op::convolution()) return std::nullopt;
    const ValueId bias = tensor_argument(site.node, kBias);
    if (bias == graph::kNoValue) return std::nullopt;
    const TensorMeta& result = site.meta();
    const TensorMeta& vector = site.graph.meta(bias);
    if (vector.dtype != result.dtype) return std::nullopt;
    std::vector<Argument> arguments = site.node.args;
    arguments[kBias] = graph::None{};
    const ValueId product = site.emit(op::convolution(), std::move(arguments), result);
    std::vector<Expr> sizes(static_cast<size_t>(result.rank()) - 1, Expr(1));
    sizes[0] = vector.sizes[0];
    const TensorMeta by_channel = contiguous_meta(vector.dtype, vector.device, sizes);
    const ValueId column = site.emit(op::view(), {ValueRef{bias}, sizes}, by_channel);
    return {{site.emit(op::add(), {ValueRef{product}, ValueRef{column}, Expr(1)}, result)}};
  });
}

}  // namespace oxy::passes
