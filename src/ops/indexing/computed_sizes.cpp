// Shape rules of results whose sizes depend on data.
#include "ops/indexing/shapes.h"

#include <algorithm>
#include <vector>

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {

Metas nonzero(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Expr count = context.computed_size(element_count(self));
  TensorMeta out =
      contiguous_meta(DType::Int64, self.device, {count, Expr(static_cast<int64_t>(self.rank()))});
  out.strides = {1, count};
  return {out};
}

Metas repeat_interleave(const ShapeContext& context) {
  const TensorMeta& repeats = context.tensor(0);
  if (repeats.rank() != 1) not_covered(context, "repeats that are no list");
  const Expr count = context.is_none(1) ? context.computed_size(sym::kMaxInt) : expression(context, 1);
  return {contiguous_meta(repeats.dtype, repeats.device, {count})};
}

namespace {

// What is found, for each element the place of its like, and how often each was found. torch leaves what is
// not asked for empty.
Metas unique_elements(const ShapeContext& context, bool has_places, bool has_counts) {
  const TensorMeta& self = context.tensor(0);
  const Expr count = context.computed_size(element_count(self));
  return {contiguous_meta(self.dtype, self.device, {count}),
          contiguous_meta(DType::Int64, self.device, has_places ? self.sizes : std::vector<Expr>{0}),
          contiguous_meta(DType::Int64, self.device, {has_counts ? count : Expr(0)})};
}

}  // namespace

Metas unique(const ShapeContext& context) {
  return unique_elements(context, flag(context, 2), flag(context, 3));
}

Metas unique_consecutive(const ShapeContext& context) {
  if (!context.is_none(3)) not_covered(context, "a dimension");
  return unique_elements(context, flag(context, 1), flag(context, 2));
}

Metas unique_rows(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const auto dim = static_cast<size_t>(dim_argument(context, 1, self.rank()));
  if (self.rank() == 0) not_covered(context, "a tensor without dimensions");
  const Expr& rows = self.sizes[dim];
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (d != dim && context.equal(self.sizes[d], 0)) refused_by_eager(context, "rows without elements");
  const Expr count = context.computed_size(rows);
  // The rows lie one behind the other.
  std::vector<Expr> sizes = self.sizes;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  sizes.insert(sizes.begin(), count);
  TensorMeta out = contiguous_meta(self.dtype, self.device, sizes);
  std::rotate(out.sizes.begin(), out.sizes.begin() + 1,
              out.sizes.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
  std::rotate(out.strides.begin(), out.strides.begin() + 1,
              out.strides.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
  return {out, contiguous_meta(DType::Int64, self.device, {rows}),
          contiguous_meta(DType::Int64, self.device, {count})};
}

}  // namespace oxy::ops::shapes
