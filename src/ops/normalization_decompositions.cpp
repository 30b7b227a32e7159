#include "ops/normalization_decompositions.h"

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

namespace {

ValueRef sum_over(Composer& c, ValueRef value, std::vector<Expr> dims, bool keepdim) {
  return c.call("aten::sum.dim_IntList", {value, std::move(dims), keepdim});
}

}  // namespace

std::vector<ValueRef> softmax_backward(Composer& c) {
  // (grad_output, output, dim, input_dtype)
  const ValueRef product = c.call("aten::mul.Tensor", {c.arg(0), c.arg(1)});
  const ValueRef total = sum_over(c, product, {Expr(c.integer(2))}, true);
  return {c.call("aten::sub.Tensor", {product, c.call("aten::mul.Tensor", {c.arg(1), total})})};
}

std::vector<ValueRef> log_softmax_backward(Composer& c) {
  const ValueRef total = c.call("aten::sum.dim_IntList", {c.arg(0), std::vector<Expr>{c.integer(2)}, true});
  const ValueRef share = c.call("aten::mul.Tensor", {c.call("aten::exp", {c.arg(1)}), total});
  return {c.call("aten::sub.Tensor", {c.arg(0), share})};
}

std::vector<ValueRef> layer_norm_backward(Composer& c) {
  // (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
  const TensorMeta input = c.meta(c.arg(1));
  const TensorMeta statistics = c.meta(c.arg(3));
  if (input.dtype != statistics.dtype || c.is_none(5)) throw Unsupported("statistics of another type");
  const auto inner = static_cast<int64_t>(std::get<std::vector<Expr>>(c.arg(2)).size());
  std::vector<Expr> outer_dims;
  std::vector<Expr> inner_dims;
  Expr count = 1;
  for (int64_t d = 0; d < input.rank(); ++d) {
    (d < input.rank() - inner ? outer_dims : inner_dims).emplace_back(d);
    if (d >= input.rank() - inner) count = count * input.sizes[static_cast<size_t>(d)];
  }
  if (outer_dims.empty() || !count.is_constant()) throw Unsupported("a single row or a symbolic row");
  const ValueRef centred = c.call("aten::sub.Tensor", {c.arg(1), c.arg(3)});
  const ValueRef normalized = c.call("aten::mul.Tensor", {centred, c.arg(4)});
  const ValueRef weighted = c.call("aten::mul.Tensor", {c.arg(0), c.arg(5)});
  const double scale = 1.0 / static_cast<double>(count.constant());
  const ValueRef mean = c.call("aten::mul.Tensor", {sum_over(c, weighted, inner_dims, true), scale});
  const ValueRef product = c.call("aten::mul.Tensor", {weighted, normalized});
  const ValueRef slope = c.call("aten::mul.Tensor", {sum_over(c, product, inner_dims, true), scale});
  const ValueRef level = c.call("aten::sub.Tensor", {weighted, mean});
  const ValueRef rest = c.call("aten::sub.Tensor", {level, c.call("aten::mul.Tensor", {normalized, slope})});
  const ValueRef input_gradient = c.call("aten::mul.Tensor", {rest, c.arg(4)});
  const ValueRef by_weight = c.call("aten::mul.Tensor", {c.arg(0), normalized});
  return {input_gradient, sum_over(c, by_weight, outer_dims, false),
          c.call("aten::sum.dim_IntList", {c.arg(0), outer_dims, false})};
}

}  // namespace oxy::ops::decompositions
