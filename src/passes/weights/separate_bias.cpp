#include "passes/weights/separate_bias.h"

#include "aten/operators.h"
#include "ops/core/composer.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

using Replacement = std::optional<std::vector<ValueId>>;

Replacement separate_addition(const Site& site) {
  constexpr size_t kBias = 2;
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
}

// The results of the convolution's backward pass: the gradients of its input, its weight and its bias.
Replacement separate_sum(const Site& site) {
  constexpr size_t kGradient = 0, kMask = 10, kOfBias = 2;
  const auto* const mask = std::get_if<std::vector<bool>>(&site.node.args.at(kMask));
  if (mask == nullptr || !mask->at(kOfBias) || site.node.outputs.at(kOfBias) == graph::kNoValue)
    return std::nullopt;
  const ValueId gradient = tensor_argument(site.node, kGradient);
  const TensorMeta summed = site.graph.meta(gradient);
  if (summed.dtype != site.meta(kOfBias).dtype) return std::nullopt;

  std::vector<ValueId> results = keep_without(site, kOfBias);
  std::vector<Expr> dims = {0};
  for (int64_t dim = 2; dim < summed.rank(); ++dim) dims.emplace_back(dim);
  ops::Composer composer(site.graph, site.node);
  results[kOfBias] = composer.call(op::sum_over(), {ValueRef{gradient}, std::move(dims)}).id;
  return results;
}

}  // namespace

graph::Graph separate_bias(const graph::Graph& source) {
  return rewrite(source, [](const Site& site) -> Replacement {
    if (site.node.op == op::convolution()) return separate_addition(site);
    if (site.node.op == op::convolution_backward()) return separate_sum(site);
    return std::nullopt;
  });
}

}  // namespace oxy::passes
