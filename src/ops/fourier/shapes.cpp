#include "ops/fourier/shapes.h"

#include <algorithm>
#include <span>

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

using Dims = std::vector<size_t>;

Dims transformed(const ShapeContext& context, const TensorMeta& self) {
  if (!(self.device == Device{})) not_covered(context, "results of a library of this device");
  Dims dims;
  for (const Expr& dim : list(context, 1))
    dims.push_back(static_cast<size_t>(wrap_dim(context, known(context, dim), self.rank())));
  if (dims.empty()) not_covered(context, "no dimension to transform");
  for (const size_t d : dims)
    if (context.less(self.sizes[d], 1)) not_covered(context, "no elements to transform");
  for (const Expr& size : self.sizes)
    if (context.equal(size, 0)) refused_by_eager(context, "a batch without elements");
  return dims;
}

// By strides, the largest first.
void sort_by_strides(const ShapeContext& context, const TensorMeta& meta, std::span<size_t> dims) {
  TensorMeta copy;
  const std::vector<Expr>& strides = with_large_sizes(meta, copy).strides;
  for (size_t i = 1; i < dims.size(); ++i)
    for (size_t k = i; k > 0 && context.less(strides[dims[k - 1]], strides[dims[k]]); --k)
      std::swap(dims[k - 1], dims[k]);
}

// What a transform of the dimensions writes: these innermost, in their order, the others by their strides.
TensorMeta written(const ShapeContext& context, const TensorMeta& self, const Dims& dims,
                   std::vector<Expr> sizes, DType dtype) {
  Dims order;
  for (size_t d = 0; d < sizes.size(); ++d) order.push_back(d);
  // Swaps, as std::partition does: the order of equal strides depends on it.
  const auto is_batch = [&](size_t d) { return std::ranges::find(dims, d) == dims.end(); };
  order.erase(std::partition(order.begin(), order.end(), is_batch), order.end());
  sort_by_strides(context, self, order);
  order.insert(order.end(), dims.begin(), dims.end());
  TensorMeta out = contiguous_meta(dtype, self.device, std::move(sizes));
  Expr stride = 1;
  for (size_t k = order.size(); k-- > 0;) {
    out.strides[order[k]] = stride;
    stride = stride * sym::max(out.sizes[order[k]], 1);
  }
  return out;
}

TensorMeta of_complex(const ShapeContext& context, const TensorMeta& self, Dims dims) {
  sort_by_strides(context, self, dims);
  return written(context, self, dims, self.sizes, self.dtype);
}

}  // namespace

Metas fourier_of_real(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.dtype != DType::Float32 && self.dtype != DType::Float64) not_covered(context, "this type");
  Dims dims = transformed(context, self);
  sort_by_strides(context, self, std::span(dims).first(dims.size() - 1));
  std::vector<Expr> sizes = self.sizes;
  if (flag(context, 3)) sizes[dims.back()] = sym::floordiv(sizes[dims.back()], 2) + 1;
  const DType dtype = self.dtype == DType::Float32 ? DType::Complex64 : DType::Complex128;
  return {written(context, self, dims, std::move(sizes), dtype)};
}

Metas fourier_of_complex(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!is_complex(self.dtype)) not_covered(context, "this type");
  return {of_complex(context, self, transformed(context, self))};
}

Metas fourier_to_real(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!is_complex(self.dtype)) not_covered(context, "this type");
  Dims dims = transformed(context, self);
  const size_t last = dims.back();
  dims.pop_back();
  const TensorMeta between = dims.empty() ? self : of_complex(context, self, dims);
  std::vector<Expr> sizes = self.sizes;
  sizes[last] = expression(context, 3);
  if (context.less(sizes[last], 1)) not_covered(context, "a length below one");
  return {written(context, between, {last}, std::move(sizes),
                  self.dtype == DType::Complex64 ? DType::Float32 : DType::Float64)};
}

}  // namespace oxy::ops::shapes
