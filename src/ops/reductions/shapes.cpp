#include "ops/reductions/shapes.h"

#include <cmath>

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

bool is_whole(DType dtype) {
  return !is_floating(dtype) && !is_complex(dtype);
}

DType real_type(DType dtype) {
  if (dtype == DType::Complex64) return DType::Float32;
  return dtype == DType::Complex128 ? DType::Float64 : dtype;
}

TensorMeta reduced(const TensorMeta& self, const std::vector<bool>& mask, bool keepdim, DType dtype) {
  std::vector<Expr> sizes;
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    if (!mask[d]) {
      sizes.push_back(self.sizes[d]);
    } else if (keepdim) {
      sizes.push_back(1);
    }
  }
  return contiguous_meta(dtype, self.device, std::move(sizes));
}

TensorMeta reduced_wholly(const TensorMeta& self, DType dtype) {
  return contiguous_meta(dtype, self.device, {});
}

// Position of an argument by name: overloads of a reduction differ in which they have.
std::optional<size_t> find_argument(const ShapeContext& context, std::string_view name) {
  const auto& arguments = context.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == name) return i;
  return std::nullopt;
}

TensorMeta reduce(const ShapeContext& context, DType dtype) {
  const TensorMeta& self = context.tensor(0);
  const auto dim = find_argument(context, "dim");
  if (!dim) return reduced_wholly(self, dtype);
  const auto keepdim = find_argument(context, "keepdim");
  return reduced(self, dim_mask(context, *dim, self.rank()), keepdim && flag(context, *keepdim), dtype);
}

// Whether a result is made of no more elements than the correction takes away, or there are none.
bool lacks_degrees_of_freedom(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<bool> mask = dim_mask(context, 1, self.rank());
  Expr count = 1;
  Expr results = 1;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    (mask[d] ? count : results) = (mask[d] ? count : results) * self.sizes[d];
  const auto* symbolic = std::get_if<Expr>(&context.arg(2));
  const std::optional<double> correction = context.is_none(2) ? 1 : real(context, 2);
  if (symbolic == nullptr && !(correction && std::abs(*correction) < 1e15))
    not_covered(context, "a correction that is not a number");
  const Expr taken = symbolic != nullptr ? *symbolic : Expr(static_cast<int64_t>(std::floor(*correction)));
  return context.less_equal(count, taken) || (context.less_equal(0, taken) && context.equal(results, 0));
}

std::optional<DType> asked_dtype(const ShapeContext& context) {
  const auto i = find_argument(context, "dtype");
  return i ? optional_dtype(context, *i) : std::nullopt;
}

// A reduction without a neutral element needs elements along the reduced dimensions. Of others there may be
// none.
void need_elements(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const auto dim = find_argument(context, "dim");
  const std::vector<bool> mask =
      dim ? dim_mask(context, *dim, self.rank()) : std::vector<bool>(self.sizes.size(), true);
  for (size_t d = 0; d < mask.size(); ++d)
    if (mask[d] && context.equal(self.sizes[d], 0)) not_covered(context, "a dimension without elements");
}

}  // namespace

Metas sum(const ShapeContext& context) {
  const DType own = context.tensor(0).dtype;
  return {reduce(context, asked_dtype(context).value_or(is_whole(own) ? DType::Int64 : own))};
}

Metas nansum(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (is_complex(self.dtype) && is_on_host(self.device)) refused_by_eager(context, "complex numbers");
  return sum(context);
}

Metas mean(const ShapeContext& context) {
  const DType dtype = asked_dtype(context).value_or(context.tensor(0).dtype);
  if (is_whole(dtype)) not_covered(context, "the mean of integers");
  return {reduce(context, dtype)};
}

Metas extremum(const ShapeContext& context) {
  need_elements(context);
  if (is_complex(context.tensor(0).dtype)) not_covered(context, "an order of complex numbers");
  return {reduce(context, context.tensor(0).dtype)};
}

Metas extremum_with_index(const ShapeContext& context) {
  TensorMeta values = extremum(context)[0];
  TensorMeta indices = values;
  indices.dtype = DType::Int64;
  return {values, indices};
}

Metas both_extrema(const ShapeContext& context) {
  TensorMeta values = extremum(context)[0];
  // If no dimension is named, the kernel for GPUs keeps none, also with keepdim.
  if (context.is_none(1) && !is_on_host(values.device))
    values = contiguous_meta(values.dtype, values.device, {});
  return {values, values};
}

Metas arg_extremum(const ShapeContext& context) {
  need_elements(context);
  if (is_complex(context.tensor(0).dtype) || context.tensor(0).dtype == DType::Bool)
    not_covered(context, "an operand of this type");
  const TensorMeta& self = context.tensor(0);
  std::vector<bool> mask(self.sizes.size(), true);
  if (!context.is_none(1)) mask = dim_mask(context, 1, self.rank());
  return {reduced(self, mask, flag(context, 2), DType::Int64)};
}

Metas any_or_all(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const DType dtype = self.dtype == DType::UInt8 ? DType::UInt8 : DType::Bool;
  // An empty list (not None) of dimensions reduces nothing.
  const auto* dims = context.size() > 1 ? std::get_if<std::vector<Expr>>(&context.arg(1)) : nullptr;
  if (dims != nullptr && dims->empty())
    return {reduced(self, std::vector<bool>(self.sizes.size()), false, dtype)};
  return {reduce(context, dtype)};
}

Metas count_nonzero(const ShapeContext& context) {
  return {reduce(context, DType::Int64)};
}

Metas variance(const ShapeContext& context) {
  const DType own = context.tensor(0).dtype;
  if (is_whole(own)) not_covered(context, "the variance of integers");
  if (lacks_degrees_of_freedom(context))
    refused_by_eager(context, "warns that there are no degrees of freedom");
  return {reduce(context, real_type(own))};
}

Metas variance_and_mean(const ShapeContext& context) {
  TensorMeta value = variance(context)[0];
  TensorMeta average = value;
  average.dtype = context.tensor(0).dtype;
  return {value, average};
}

Metas log_sum_exp(const ShapeContext& context) {
  const DType own = context.tensor(0).dtype;
  if (is_whole(own) && list(context, 1).empty() && !flag(context, 2))
    not_covered(context, "whole numbers without a dimension");
  return {reduce(context, is_whole(own) ? context.default_dtype() : own)};
}

Metas norm(const ShapeContext& context) {
  const DType own = context.tensor(0).dtype;
  const DType dtype = asked_dtype(context).value_or(own);
  if (is_whole(own) || is_whole(dtype)) not_covered(context, "the norm of integers");
  // Those of order infinity, and negative ones, have no neutral element.
  const std::optional<double> order = context.is_none(1) ? 2 : real(context, 1);
  if (!order || !(*order >= 0 && std::isfinite(*order))) need_elements(context);
  return {reduce(context, real_type(dtype))};
}

Metas whole_to_scalar(const ShapeContext& context) {
  return {reduced_wholly(context.tensor(0), context.tensor(0).dtype)};
}

Metas kth_value(const ShapeContext& context) {
  return extremum_with_index(context);
}

Metas scan(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  dim_argument(context, 1, self.rank());
  const DType dtype = asked_dtype(context).value_or(is_whole(self.dtype) ? DType::Int64 : self.dtype);
  return {contiguous_meta(dtype, self.device, self.sizes)};
}

Metas histogram(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  return {contiguous_meta(self.dtype, self.device, {expression(context, 1)})};
}

Metas float_scan(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  dim_argument(context, 1, self.rank());
  if (is_whole(self.dtype)) not_covered(context, "integers");
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas scan_with_index(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  dim_argument(context, 1, self.rank());
  return {contiguous_meta(self.dtype, self.device, self.sizes),
          contiguous_meta(DType::Int64, self.device, self.sizes)};
}

Metas sort(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  dim_argument(context, *find_argument(context, "dim"), self.rank());
  if (is_complex(self.dtype)) not_covered(context, "an order of complex numbers");
  return {dense_like(context, self, self.dtype), dense_like(context, self, DType::Int64)};
}

Metas top_k(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const auto dim = static_cast<size_t>(dim_argument(context, 2, self.rank()));
  const Expr& k = expression(context, 1);
  std::vector<Expr> sizes = self.sizes;
  if (!sizes.empty()) {
    if (!context.require(sym::less_equal(0, k)) || !context.require(sym::less_equal(k, sizes[dim])))
      not_covered(context, "k out of range");
    sizes[dim] = k;
  }
  return {contiguous_meta(self.dtype, self.device, sizes), contiguous_meta(DType::Int64, self.device, sizes)};
}

namespace {

// One matrix of these sizes for each of the batches of two lists of points, which are broadcast.
TensorMeta matrix_of_points(const ShapeContext& context, TensorMeta a, TensorMeta b, Expr rows,
                            Expr columns) {
  a.sizes.resize(a.sizes.size() - 2);
  b.sizes.resize(b.sizes.size() - 2);
  const TensorMeta* const batches[] = {&a, &b};
  std::vector<Expr> sizes = broadcast(context, batches);
  sizes.push_back(std::move(rows));
  sizes.push_back(std::move(columns));
  return contiguous_meta(a.dtype, a.device, std::move(sizes));
}

void need_points(const ShapeContext& context, const TensorMeta& a, const TensorMeta& b) {
  if (a.rank() < 2 || b.rank() < 2) not_covered(context, "fewer than two dimensions");
}

}  // namespace

Metas distance_matrix(const ShapeContext& context) {
  const TensorMeta &a = context.tensor(0), &b = context.tensor(1);
  need_points(context, a, b);
  return {matrix_of_points(context, a, b, a.sizes[a.sizes.size() - 2], b.sizes[b.sizes.size() - 2])};
}

// (grad, x1, x2, p, cdist), of x1.
Metas gradient_of_distance_matrix(const ShapeContext& context) {
  const TensorMeta &a = context.tensor(1), &b = context.tensor(2);
  need_points(context, a, b);
  return {matrix_of_points(context, a, b, a.sizes[a.sizes.size() - 2], a.sizes.back())};
}

Metas distances_of_rows(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() != 2 || (self.dtype != DType::Float32 && self.dtype != DType::Float64))
    not_covered(context, "a tensor that is no matrix");
  if (!real(context, 1) || *real(context, 1) < 0) not_covered(context, "this power");
  const Expr& rows = self.sizes[0];
  return {contiguous_meta(self.dtype, self.device, {sym::floordiv(rows * sym::max(rows - 1, 0), 2)})};
}

Metas gradient_of_distances(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas renorm(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() < 2 || !is_floating(self.dtype)) not_covered(context, "a tensor of this kind");
  static_cast<void>(dim_argument(context, 2, self.rank()));
  const std::optional<double> power = real(context, 1), largest = real(context, 3);
  if (!power || !largest || *power <= 0 || *largest < 0) not_covered(context, "these numbers");
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas counts_and_edges(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Expr bins = expression(context, 1);
  if (!is_floating(self.dtype) || context.less(bins, 1)) not_covered(context, "operands of this kind");
  return {contiguous_meta(self.dtype, self.device, {bins}),
          contiguous_meta(self.dtype, self.device, {bins + 1})};
}

Metas trace(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() != 2) not_covered(context, "a tensor that is no matrix");
  return {reduced_wholly(self, is_whole(self.dtype) ? DType::Int64 : self.dtype)};
}

Metas truth(const ShapeContext& context) {
  if (context.tensor(0).dtype != DType::Bool) not_covered(context, "an operand of this type");
  return {reduced_wholly(context.tensor(0), DType::Bool)};
}

}  // namespace oxy::ops::shapes
