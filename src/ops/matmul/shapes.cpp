#include "ops/matmul/shapes.h"

#include <algorithm>

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

void need(const ShapeContext& context, bool condition, std::string_view what) {
  if (!condition) not_covered(context, what);
}

void need_types(const ShapeContext& context, const TensorMeta& a, const TensorMeta& b) {
  need(context, a.dtype == b.dtype, "factors of different types");
  need(context, a.dtype != DType::Bool, "factors of this type");
}

TensorMeta product_of(const ShapeContext& context, const TensorMeta& a, const TensorMeta& b) {
  need_types(context, a, b);
  need(context, a.rank() == 2 && b.rank() == 2, "factors that are no matrices");
  need(context, context.equal(a.sizes[1], b.sizes[0]), "inner sizes that differ");
  return contiguous_meta(a.dtype, a.device, {a.sizes[0], b.sizes[1]});
}

TensorMeta batched_product_of(const ShapeContext& context, const TensorMeta& a, const TensorMeta& b) {
  need_types(context, a, b);
  need(context, a.rank() == 3 && b.rank() == 3, "factors that are no batches of matrices");
  need(context, context.equal(a.sizes[2], b.sizes[1]) && context.equal(a.sizes[0], b.sizes[0]),
       "sizes that do not fit");
  return contiguous_meta(a.dtype, a.device, {a.sizes[0], a.sizes[1], b.sizes[2]});
}

TensorMeta with_addend(const ShapeContext& context, const TensorMeta& addend, TensorMeta out) {
  need(context, addend.dtype == out.dtype, "an addend of another type");
  need(context, broadcasts_to(context, addend.sizes, out.sizes), "an addend that does not broadcast");
  return out;
}

TensorMeta matrix_vector(const ShapeContext& context, const TensorMeta& matrix, const TensorMeta& vector) {
  need_types(context, matrix, vector);
  need(context, matrix.rank() == 2 && vector.rank() == 1, "factors of other ranks");
  need(context, context.equal(matrix.sizes[1], vector.sizes[0]), "inner sizes that differ");
  return contiguous_meta(matrix.dtype, matrix.device, {matrix.sizes[0]});
}

}  // namespace

Metas mm(const ShapeContext& context) {
  return {product_of(context, context.tensor(0), context.tensor(1))};
}

Metas vector_product(const ShapeContext& context) {
  const TensorMeta& matrix = context.tensor(1);
  return {contiguous_meta(matrix.dtype, matrix.device, {Expr(1), matrix.sizes[0]})};
}

Metas bmm(const ShapeContext& context) {
  return {batched_product_of(context, context.tensor(0), context.tensor(1))};
}

Metas addmm(const ShapeContext& context) {
  return {with_addend(context, context.tensor(0), product_of(context, context.tensor(1), context.tensor(2)))};
}

Metas baddbmm(const ShapeContext& context) {
  return {with_addend(context, context.tensor(0),
                      batched_product_of(context, context.tensor(1), context.tensor(2)))};
}

Metas addbmm(const ShapeContext& context) {
  const TensorMeta batched = batched_product_of(context, context.tensor(1), context.tensor(2));
  return {with_addend(context, context.tensor(0),
                      contiguous_meta(batched.dtype, batched.device, {batched.sizes[1], batched.sizes[2]}))};
}

Metas mv(const ShapeContext& context) {
  return {matrix_vector(context, context.tensor(0), context.tensor(1))};
}

Metas addmv(const ShapeContext& context) {
  const TensorMeta& addend = context.tensor(0);
  TensorMeta product = matrix_vector(context, context.tensor(1), context.tensor(2));
  // Without elements in the matrix, eager's result has the addend's shape.
  for (const Expr& size : context.tensor(1).sizes)
    if (addend.sizes != product.sizes && context.equal(size, 0))
      refused_by_eager(context, "an empty matrix beside an addend that is repeated");
  return {with_addend(context, addend, std::move(product))};
}

Metas addr(const ShapeContext& context) {
  const TensorMeta& a = context.tensor(1);
  const TensorMeta& b = context.tensor(2);
  need(context, a.rank() == 1 && b.rank() == 1, "factors that are no vectors");
  Promotion promotion(context.default_dtype());
  for (size_t i : {0, 1, 2}) promotion.add_tensor(context.tensor(i));
  const DType dtype = promotion.result();
  need(context, a.dtype == dtype && b.dtype == dtype, "factors of different types");
  const TensorMeta product = contiguous_meta(dtype, a.device, {a.sizes[0], b.sizes[0]});
  with_addend(context, context.tensor(0), product);
  // Element-wise over the addend, a column and a row.
  TensorMeta column = a;
  column.sizes.push_back(1);
  column.strides.push_back(1);
  const TensorMeta* const operands[] = {&context.tensor(0), &column, &b};
  TensorMeta out = element_wise_layout(context, operands);
  out.dtype = dtype;
  out.device = a.device;
  return {out};
}

Metas dot(const ShapeContext& context) {
  const TensorMeta& a = context.tensor(0);
  const TensorMeta& b = context.tensor(1);
  need_types(context, a, b);
  need(context, a.rank() == 1 && b.rank() == 1 && context.equal(a.sizes[0], b.sizes[0]), "sizes that differ");
  return {contiguous_meta(a.dtype, a.device, {})};
}

Metas linalg_cross(const ShapeContext& context) {
  const TensorMeta& a = context.tensor(0);
  const TensorMeta& b = context.tensor(1);
  need_types(context, a, b);
  need(context, a.rank() == b.rank() && a.rank() > 0, "factors of other ranks");
  const auto dim = static_cast<size_t>(dim_argument(context, 2, a.rank()));
  need(context, context.equal(a.sizes[dim], 3) && context.equal(b.sizes[dim], 3), "vectors of another size");
  const TensorMeta* const operands[] = {&a, &b};
  return {contiguous_meta(a.dtype, a.device, broadcast(context, operands))};
}

Metas mm_to_type(const ShapeContext& context) {
  TensorMeta out = mm(context)[0];
  out.dtype = optional_dtype(context, 2).value_or(out.dtype);
  return {out};
}

Metas bmm_to_type(const ShapeContext& context) {
  TensorMeta out = bmm(context)[0];
  out.dtype = optional_dtype(context, 2).value_or(out.dtype);
  return {out};
}

Metas trilinear(const ShapeContext& context) {
  const auto dims = [&](size_t i) {
    std::vector<int64_t> places;
    for (const Expr& place : list(context, i)) places.push_back(known(context, place));
    return places;
  };
  const auto has = [](const std::vector<int64_t>& places, size_t d) {
    return std::ranges::find(places, static_cast<int64_t>(d)) != places.end();
  };
  const std::vector<int64_t> summed = dims(6);
  const size_t rank = context.tensor(0).rank() + dims(3).size();
  std::vector<Expr> whole(rank, Expr(1));
  for (size_t i = 0; i < 3; ++i) {
    const TensorMeta& operand = context.tensor(i);
    const std::vector<int64_t> added = dims(i + 3);
    if (operand.rank() + added.size() != rank || operand.dtype != context.tensor(0).dtype)
      not_covered(context, "operands of other ranks or types");
    size_t own = 0;
    for (size_t d = 0; d < rank; ++d) {
      if (has(added, d)) continue;
      const Expr& size = operand.sizes.at(own++);
      if (!(whole[d] == Expr(1)) && !context.equal(whole[d], size))
        not_covered(context, "sizes that do not fit");
      if (whole[d] == Expr(1)) whole[d] = size;
    }
  }
  std::vector<Expr> sizes;
  for (size_t d = 0; d < rank; ++d)
    if (!has(summed, d)) sizes.push_back(whole[d]);
  return {contiguous_meta(context.tensor(0).dtype, context.tensor(0).device, std::move(sizes))};
}

}  // namespace oxy::ops::shapes
