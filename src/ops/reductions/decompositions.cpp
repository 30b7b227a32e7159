#include "ops/reductions/decompositions.h"

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

std::vector<ValueRef> nansum(Composer& c) {
  // (self, dim, keepdim, dtype)
  const TensorMeta self = c.meta(c.arg(0));
  if (!is_floating(self.dtype)) throw Unsupported("numbers that are never NaN");
  const ValueRef zero = c.call("aten::full", {std::vector<Expr>{}, 0.0, self.dtype, Argument{}, self.device});
  const ValueRef clean = c.call("aten::where.self", {c.call("aten::isnan", {c.arg(0)}), zero, c.arg(0)});
  return {c.call("aten::sum.dim_IntList", {clean, c.arg(1), c.arg(2), c.arg(3)})};
}

std::vector<ValueRef> both_extrema(Composer& c) {
  // (self, *, dim, keepdim)
  const Argument dims = c.is_none(1) ? std::vector<Expr>{} : std::vector<Expr>{std::get<Expr>(c.arg(1))};
  return {c.call("aten::amin", {c.arg(0), dims, c.arg(2)}), c.call("aten::amax", {c.arg(0), dims, c.arg(2)})};
}

std::vector<ValueRef> count_nonzero(Composer& c) {
  // (self, dim): one dimension, None or a list
  if (is_complex(c.meta(c.arg(0)).dtype)) throw Unsupported("complex numbers");
  Argument dims = c.arg(1);
  if (const auto* dim = std::get_if<Expr>(&c.arg(1))) dims = std::vector<Expr>{*dim};
  const ValueRef nonzero = c.call("aten::ne.Scalar", {c.arg(0), Expr(0)});
  return {c.call("aten::sum.dim_IntList", {nonzero, dims, false})};
}

std::vector<ValueRef> norm(Composer& c) {
  // (self, p[, dim, keepdim]), no dtype
  const Argument p = c.is_none(1) ? Argument(2.0) : c.arg(1);
  if (c.node().args.size() == 2) return {c.call("aten::linalg_vector_norm", {c.arg(0), p})};
  return {c.call("aten::linalg_vector_norm", {c.arg(0), p, c.arg(2), c.arg(3)})};
}

}  // namespace oxy::ops::decompositions
