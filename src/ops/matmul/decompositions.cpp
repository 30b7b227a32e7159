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

std::vector<ValueRef> linalg_cross(Composer& c) {
  // (self, other, *, dim): element i is self[i + 1] * other[i + 2] - self[i + 2] * other[i + 1]
  if (is_complex(c.result().dtype)) throw Unsupported("many calls of PyTorch's kernels in place of one");
  const auto rolled = [&](size_t factor, int64_t by) {
    return c.call("aten::roll",
                  {c.arg(factor), std::vector<Expr>{Expr(by)}, std::vector<Expr>{std::get<Expr>(c.arg(2))}});
  };
  const ValueRef product = c.call("aten::mul.Tensor", {rolled(0, -1), rolled(1, -2)});
  const ValueRef other = c.call("aten::mul.Tensor", {rolled(0, -2), rolled(1, -1)});
  const ValueRef result = c.call("aten::sub.Tensor", {product, other});
  if (is_contiguous(c.meta(result))) return {result};
  return {c.call("aten::clone", {result, MemoryFormat::Contiguous})};
}

std::vector<ValueRef> addmm_activation(Composer& c) {
  // (self, mat1, mat2, *, beta, alpha, use_gelu)
  const ValueRef product = c.call("aten::addmm", {c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.arg(4)});
  if (!c.flag(5)) return {c.call("aten::relu", {product})};
  return {c.call("aten::gelu", {product, std::string("tanh")})};
}

}  // namespace oxy::ops::decompositions
