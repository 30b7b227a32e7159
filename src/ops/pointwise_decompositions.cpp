#include "ops/pointwise_decompositions.h"

#include <limits>

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

std::vector<ValueRef> leaky_relu_backward(Composer& c) {
  // (grad_output, self, negative_slope, self_is_result): the sign of the result is that of the input, too
  const ValueRef scaled = c.call("aten::mul.Tensor", {c.arg(0), c.real(2)});
  return {c.call("aten::where.self", {c.call("aten::gt.Scalar", {c.arg(1), Expr(0)}), c.arg(0), scaled})};
}

namespace {

std::vector<ValueRef> equals_infinity(Composer& c, double infinity) {
  if (!is_floating(c.meta(c.arg(0)).dtype)) throw Unsupported("numbers that are never infinite");
  return {c.call("aten::eq.Scalar", {c.arg(0), infinity})};
}

}  // namespace

std::vector<ValueRef> is_positive_infinity(Composer& c) {
  return equals_infinity(c, std::numeric_limits<double>::infinity());
}

std::vector<ValueRef> is_negative_infinity(Composer& c) {
  return equals_infinity(c, -std::numeric_limits<double>::infinity());
}

}  // namespace oxy::ops::decompositions
