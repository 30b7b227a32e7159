#include "ops/matmul/decompositions.h"

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

std::vector<ValueRef> baddbmm(Composer& c) {
  // (self, batch1, batch2, *, beta, alpha): with beta = 0 even a NaN of self is left out
  if (c.real(3) != 0) throw Unsupported("an addend");
  const ValueRef product = c.call("aten::bmm", {c.arg(1), c.arg(2)});
  return {c.real(4) == 1 ? product : c.call("aten::mul.Tensor", {product, c.arg(4)})};
}

std::vector<ValueRef> addr(Composer& c) {
  // (self, vec1, vec2, *, beta, alpha)
  if (c.real(3) == 0) throw Unsupported("no addend");
  const ValueRef column = c.call("aten::unsqueeze", {c.arg(1), Expr(1)});
  ValueRef product = c.call("aten::mul.Tensor", {column, c.arg(2)});
  if (c.real(4) != 1) product = c.call("aten::mul.Tensor", {product, c.arg(4)});
  const Argument addend =
      c.real(3) == 1 ? c.arg(0) : Argument(c.call("aten::mul.Tensor", {c.arg(0), c.arg(3)}));
  return {c.call("aten::add.Tensor", {addend, product})};
}

std::vector<ValueRef> addmm_activation(Composer& c) {
  // (self, mat1, mat2, *, beta, alpha, use_gelu)
  const ValueRef product = c.call("aten::addmm", {c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.arg(4)});
  if (!c.flag(5)) return {c.call("aten::relu", {product})};
  return {c.call("aten::gelu", {product, std::string("tanh")})};
}

}  // namespace oxy::ops::decompositions
