#include "ops/linear_algebra/shapes.h"

#include <algorithm>

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

using Sizes = std::vector<Expr>;

void need(const ShapeContext& context, bool condition, std::string_view what) {
  if (!condition) not_covered(context, what);
}

DType real_dtype(DType dtype) {
  if (dtype == DType::Complex64) return DType::Float32;
  return dtype == DType::Complex128 ? DType::Float64 : dtype;
}

DType complex_dtype(DType dtype) {
  if (dtype == DType::Float32) return DType::Complex64;
  return dtype == DType::Float64 ? DType::Complex128 : dtype;
}

const Expr& rows(const TensorMeta& matrix) {
  return matrix.sizes.at(matrix.sizes.size() - 2);
}

const Expr& columns(const TensorMeta& matrix) {
  return matrix.sizes.back();
}

const TensorMeta& matrices(const ShapeContext& context, size_t i) {
  const TensorMeta& meta = context.tensor(i);
  need(context, meta.rank() >= 2, "an argument that is no matrix");
  need(context, meta.dtype == DType::Float32 || meta.dtype == DType::Float64 || is_complex(meta.dtype),
       "matrices of this type");
  return meta;
}

const TensorMeta& square(const ShapeContext& context, size_t i) {
  const TensorMeta& meta = matrices(context, i);
  need(context, context.equal(rows(meta), columns(meta)), "a matrix that is not square");
  return meta;
}

Sizes batch_and(const TensorMeta& meta, std::initializer_list<Expr> sizes) {
  Sizes result(meta.sizes.begin(), meta.sizes.end() - 2);
  result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

// Column by column.
TensorMeta of_columns(const TensorMeta& like, Sizes sizes) {
  TensorMeta out = contiguous_meta(like.dtype, like.device, std::move(sizes));
  const size_t rank = out.sizes.size();
  if (rank < 2) return out;
  out.strides[rank - 2] = 1;
  out.strides[rank - 1] = sym::max(out.sizes[rank - 2], 1);
  return out;
}

TensorMeta plain(const TensorMeta& like, DType dtype, Sizes sizes) {
  return contiguous_meta(dtype, like.device, std::move(sizes));
}

TensorMeta nothing(const TensorMeta& like) {
  return plain(like, like.dtype, {0});
}

TensorMeta pivots(const TensorMeta& like, const Expr& count) {
  return plain(like, DType::Int32, batch_and(like, {count}));
}

TensorMeta information(const TensorMeta& like) {
  return plain(like, DType::Int32, batch_and(like, {}));
}

// The smaller one of two sizes. Which one it is does not show otherwise.
Expr smaller(const Expr& a, const Expr& b) {
  return a == b ? a : sym::min(a, b);
}

Sizes broadcast_batches(const ShapeContext& context, const TensorMeta& a, const TensorMeta& b) {
  TensorMeta batch_a = a, batch_b = b;
  for (TensorMeta* meta : {&batch_a, &batch_b}) {
    meta->sizes.resize(meta->sizes.size() - 2);
    meta->strides.resize(meta->strides.size() - 2);
  }
  const TensorMeta* const operands[] = {&batch_a, &batch_b};
  return broadcast(context, operands);
}

Sizes followed_by(Sizes sizes, std::initializer_list<Expr> others) {
  sizes.insert(sizes.end(), others.begin(), others.end());
  return sizes;
}

bool is_text(const ShapeContext& context, size_t i, std::string_view text) {
  const auto* given = std::get_if<std::string>(&context.arg(i));
  return given != nullptr && *given == text;
}

void need_pivots(const ShapeContext& context, const TensorMeta& a, const TensorMeta& given) {
  need(context,
       given.dtype == DType::Int32 &&
           are_equal(context, given.sizes, batch_and(a, {smaller(rows(a), columns(a))})),
       "pivots that do not fit");
}

// What a library of another device than the host writes may be laid out otherwise.
void need_host(const ShapeContext& context, const TensorMeta& meta) {
  need(context, meta.device == Device{}, "results of a library of this device");
}

}  // namespace

Metas inverse(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {of_columns(a, a.sizes), information(a)};
}

Metas determinant(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {plain(a, a.dtype, batch_and(a, {})), of_columns(a, a.sizes), pivots(a, rows(a))};
}

Metas log_determinant(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {plain(a, a.dtype, batch_and(a, {})), plain(a, real_dtype(a.dtype), batch_and(a, {})),
          of_columns(a, a.sizes), pivots(a, rows(a))};
}

Metas solution(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  const TensorMeta& b = context.tensor(1);
  const bool left = flag(context, 2);
  need(context, a.dtype == b.dtype && b.rank() >= 1, "operands that do not fit");
  const auto are_vectors = [&] {
    if (b.rank() == 1) return true;
    if (b.rank() + 1 != a.rank()) return false;
    return are_equal(context, b.sizes, Sizes(a.sizes.begin(), a.sizes.end() - 1));
  };
  TensorMeta right = b;
  const bool of_vectors = are_vectors();
  need(context, left || !of_vectors, "vectors at the left");
  if (of_vectors) {
    right.sizes.push_back(1);
    right.strides.push_back(1);
  }
  need(context, context.equal(left ? rows(right) : columns(right), rows(a)), "sizes that do not fit");
  const Sizes batch = broadcast_batches(context, a, right);
  const Sizes of_result =
      of_vectors ? followed_by(batch, {rows(right)}) : followed_by(batch, {rows(right), columns(right)});
  TensorMeta whole = a;
  whole.sizes = followed_by(batch, {rows(a), columns(a)});
  return {left ? of_columns(a, of_result) : plain(a, a.dtype, of_result), of_columns(a, whole.sizes),
          pivots(whole, rows(a)), information(whole)};
}

Metas qr(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  const Expr least = smaller(rows(a), columns(a));
  const bool is_complete = is_text(context, 1, "complete"), has_no_q = is_text(context, 1, "r");
  need(context, is_complete || has_no_q || is_text(context, 1, "reduced"), "this mode");
  const Expr inner = is_complete ? rows(a) : least;
  return {has_no_q ? nothing(a) : of_columns(a, batch_and(a, {rows(a), inner})),
          of_columns(a, batch_and(a, {inner, columns(a)}))};
}

Metas singular_values(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  need_host(context, a);
  const bool is_full = flag(context, 1), has_vectors = flag(context, 2);
  const Expr least = smaller(rows(a), columns(a));
  const TensorMeta values = plain(a, real_dtype(a.dtype), batch_and(a, {least}));
  if (!has_vectors) return {nothing(a), values, nothing(a)};
  return {of_columns(a, batch_and(a, {rows(a), is_full ? rows(a) : least})), values,
          of_columns(a, batch_and(a, {is_full ? columns(a) : least, columns(a)}))};
}

Metas symmetric_eigenvalues(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {plain(a, real_dtype(a.dtype), batch_and(a, {rows(a)})),
          flag(context, 2) ? of_columns(a, a.sizes) : nothing(a)};
}

Metas eigenvalues(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {plain(a, complex_dtype(a.dtype), batch_and(a, {rows(a)}))};
}

Metas eigenvectors(const ShapeContext& context) {
  need_host(context, context.tensor(0));
  TensorMeta a = square(context, 0);
  a.dtype = complex_dtype(a.dtype);
  return {eigenvalues(context)[0], of_columns(a, a.sizes)};
}

Metas lu_factors(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  return {of_columns(a, a.sizes), pivots(a, smaller(rows(a), columns(a))), information(a)};
}

Metas lu(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  need_host(context, a);
  const Expr least = smaller(rows(a), columns(a));
  return {flag(context, 1) ? plain(a, a.dtype, batch_and(a, {rows(a), rows(a)})) : nothing(a),
          plain(a, a.dtype, batch_and(a, {rows(a), least})),
          plain(a, a.dtype, batch_and(a, {least, columns(a)}))};
}

Metas lu_solution(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  const TensorMeta& b = matrices(context, 2);
  const bool left = flag(context, 3);
  need(context, a.dtype == b.dtype, "operands of different types");
  need_pivots(context, a, context.tensor(1));
  need(context, context.equal(left ? rows(b) : columns(b), rows(a)), "sizes that do not fit");
  const Sizes sizes = followed_by(broadcast_batches(context, a, b), {rows(b), columns(b)});
  return {left ? of_columns(b, sizes) : plain(b, b.dtype, sizes)};
}

Metas ldl_factors(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {of_columns(a, a.sizes), pivots(a, rows(a)), information(a)};
}

Metas triangular_solution(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  const TensorMeta& b = matrices(context, 1);
  const bool left = flag(context, 3);
  need(context, a.dtype == b.dtype, "operands of different types");
  need(context, context.equal(left ? rows(b) : columns(b), rows(a)), "sizes that do not fit");
  return {of_columns(b, followed_by(broadcast_batches(context, a, b), {rows(b), columns(b)}))};
}

Metas triangular_solution_and_matrix(const ShapeContext& context) {
  const TensorMeta& b = matrices(context, 0);
  const TensorMeta& a = square(context, 1);
  need(context, a.dtype == b.dtype, "operands of different types");
  need(context, context.equal(rows(b), rows(a)), "sizes that do not fit");
  const Sizes batch = broadcast_batches(context, a, b);
  return {of_columns(b, followed_by(batch, {rows(b), columns(b)})),
          of_columns(a, followed_by(batch, {rows(a), columns(a)}))};
}

Metas least_squares(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  const TensorMeta& b = context.tensor(1);
  need_host(context, a);
  need(context, context.is_none(3) || is_text(context, 3, "gelsy"), "a driver with residuals");
  need(context, a.dtype == b.dtype && b.rank() + 1 >= a.rank() && b.rank() <= a.rank(),
       "operands that do not fit");
  const bool of_vectors = b.rank() < a.rank();
  TensorMeta right = b;
  if (of_vectors) right.sizes.push_back(1), right.strides.push_back(1);
  need(context, context.equal(rows(right), rows(a)), "sizes that do not fit");
  need(context, are_equal(context, batch_and(right, {}), batch_and(a, {})), "operands of other batches");
  // It lies where the right-hand sides were, which have more rows if the matrix has.
  const Expr longest = sym::max(rows(a), columns(a));
  TensorMeta solution = of_columns(a, batch_and(a, {longest, columns(right)}));
  solution.sizes[solution.sizes.size() - 2] = columns(a);
  if (of_vectors) solution.sizes.pop_back(), solution.strides.pop_back();
  return {solution, nothing(a), plain(a, DType::Int64, batch_and(a, {})), plain(a, real_dtype(a.dtype), {0})};
}

Metas cholesky_solution(const ShapeContext& context) {
  const TensorMeta& b = matrices(context, 0);
  const TensorMeta& a = square(context, 1);
  need(context, a.dtype == b.dtype, "operands of different types");
  need(context, context.equal(rows(b), rows(a)), "sizes that do not fit");
  return {of_columns(b, followed_by(broadcast_batches(context, a, b), {rows(b), columns(b)}))};
}

Metas inverse_of_factor(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {of_columns(a, a.sizes)};
}

namespace {

// Of reflectors and the factors of argument 1, one for each of the first columns.
const TensorMeta& reflectors_with_factors(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  const TensorMeta& factors = context.tensor(1);
  need(context, factors.dtype == a.dtype && factors.rank() == a.rank() - 1, "factors of another kind");
  need(context, are_equal(context, batch_and(a, {factors.sizes.back()}), factors.sizes),
       "factors of other batches");
  need(context, !context.less(columns(a), factors.sizes.back()), "more factors than columns");
  return a;
}

}  // namespace

Metas product_of_reflectors(const ShapeContext& context) {
  const TensorMeta& a = reflectors_with_factors(context);
  need(context, !context.less(rows(a), columns(a)), "fewer rows than columns");
  return {of_columns(a, a.sizes)};
}

Metas product_with_reflectors(const ShapeContext& context) {
  const TensorMeta& a = reflectors_with_factors(context);
  const TensorMeta& other = matrices(context, 2);
  const Expr& side = flag(context, 3) ? rows(other) : columns(other);
  need(context, other.dtype == a.dtype && other.rank() == a.rank(), "matrices of another kind");
  need(context, are_equal(context, batch_and(a, {}), batch_and(other, {})), "matrices of other batches");
  need(context, context.equal(side, rows(a)) && !context.less(side, context.tensor(1).sizes.back()),
       "sizes that do not fit");
  return {of_columns(other, other.sizes)};
}

Metas reflectors(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  return {of_columns(a, a.sizes), plain(a, a.dtype, batch_and(a, {smaller(rows(a), columns(a))}))};
}

Metas pseudo_inverse(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  need_host(context, a);
  return {plain(a, a.dtype, batch_and(a, {columns(a), rows(a)}))};
}

Metas matrix_exponential(const ShapeContext& context) {
  const TensorMeta& a = square(context, 0);
  return {plain(a, a.dtype, a.sizes)};
}

Metas unpacked_lu(const ShapeContext& context) {
  const TensorMeta& a = matrices(context, 0);
  need_host(context, a);
  need_pivots(context, a, context.tensor(1));
  const Expr least = smaller(rows(a), columns(a));
  const auto made = [&](bool is_wanted, Sizes sizes) {
    return is_wanted ? plain(a, a.dtype, std::move(sizes)) : nothing(a);
  };
  const bool has_data = flag(context, 2);
  return {made(flag(context, 3), batch_and(a, {rows(a), rows(a)})),
          made(has_data, batch_and(a, {rows(a), least})), made(has_data, batch_and(a, {least, columns(a)}))};
}

Metas no_results(const ShapeContext& context) {
  return {};
}

Metas block_diagonal(const ShapeContext& context) {
  const std::vector<graph::ValueId>& parts = tensors(context, 0);
  need(context, !parts.empty(), "no tensors");
  Promotion promotion(context.default_dtype());
  Expr height = 0, width = 0;
  for (const graph::ValueId id : parts) {
    const TensorMeta& part = context.meta_of(id);
    need(context, part.rank() <= 2, "a tensor of more than two dimensions");
    need(context, part.device == context.meta_of(parts[0]).device, "tensors of several devices");
    promotion.add_tensor(part);
    height = height + (part.rank() == 2 ? part.sizes[0] : Expr(1));
    width = width + (part.rank() == 0 ? Expr(1) : part.sizes.back());
  }
  return {contiguous_meta(promotion.result(), context.meta_of(parts[0]).device, {height, width})};
}

}  // namespace oxy::ops::shapes
