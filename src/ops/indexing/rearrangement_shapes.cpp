#include "ops/indexing/shapes.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"
#include "ops/indexing/concatenation_shapes.h"

namespace oxy::ops::shapes {

Metas flip(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  std::vector<bool> flipped(self.sizes.size());
  for (int64_t dim : integers(context, 1)) {
    if (self.sizes.empty()) continue;
    const auto place = static_cast<size_t>(wrap_dim(context, dim, self.rank()));
    if (flipped[place]) refused_by_eager(context, "a dimension that is named twice");
    flipped[place] = true;
  }
  return dense_like_first(context);
}

Metas repeat(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  std::vector<Expr> sizes = list(context, 1);
  if (sizes.size() < self.sizes.size()) not_covered(context, "fewer counts than dimensions");
  const size_t added = sizes.size() - self.sizes.size();
  for (size_t d = 0; d < self.sizes.size(); ++d) sizes[added + d] = sizes[added + d] * self.sizes[d];
  for (const Expr& size : sizes)
    if (!is_size(context, size)) not_covered(context, "a negative count");
  return {contiguous_meta(self.dtype, self.device, std::move(sizes))};
}

Metas roll(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  TensorMeta current = self;
  const size_t shifts = list(context, 1).size();
  const std::vector<int64_t> dims = integers(context, 2);
  if (dims.size() != shifts && (!dims.empty() || shifts != 1)) not_covered(context, "not one shift each");
  if (shifts == 0) not_covered(context, "no shift");
  if (!dims.empty() && self.sizes.empty()) not_covered(context, "a dimension of a tensor without any");
  if (dims.empty() || self.sizes.empty())
    return {dims.empty() ? contiguous_meta(self.dtype, self.device, self.sizes)
                         : dense_like(context, self, self.dtype)};
  for (const Expr& size : self.sizes)
    if (size == Expr(0)) return {dense_like(context, self, self.dtype)};
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto dim = static_cast<size_t>(wrap_dim(context, dims[i], self.rank()));
    const Expr size = current.sizes[dim];
    // Only formats depend on where the cut is, and those of plain tensors do not.
    if (!is_contiguous(current) && context.equal(size, 0)) return {dense_like(context, self, self.dtype)};
    if (!is_on_host(self.device)) continue;
    TensorMeta tail = current;  // each round joins two slices
    TensorMeta head = current;
    tail.sizes[dim] = sym::mod(list(context, 1)[i], size);
    head.sizes[dim] = size - tail.sizes[dim];
    const TensorMeta* const parts[] = {&tail, &head};
    current = concatenated(context, parts, static_cast<int64_t>(dim));
  }
  // The kernel for GPUs makes its operand contiguous.
  return {is_on_host(self.device) ? current : contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas rot90(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const int64_t turns = ((integer(context, 1) % 4) + 4) % 4;
  const std::vector<int64_t> dims = integers(context, 2);
  if (dims.size() != 2 || self.rank() < 2) not_covered(context, "not two dimensions");
  if (turns == 0) return {contiguous_meta(self.dtype, self.device, self.sizes)};
  TensorMeta out = dense_like(context, self, self.dtype);
  if (turns != 2) {  // a flip, seen transposed
    const auto a = static_cast<size_t>(wrap_dim(context, dims[0], self.rank()));
    const auto b = static_cast<size_t>(wrap_dim(context, dims[1], self.rank()));
    std::swap(out.sizes[a], out.sizes[b]);
    std::swap(out.strides[a], out.strides[b]);
  }
  return {out};
}

Metas diag_embed(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const int64_t offset = integer(context, 1);
  const int64_t dim1 = dim_argument(context, 2, self.rank() + 1);
  const int64_t dim2 = dim_argument(context, 3, self.rank() + 1);
  if (self.rank() == 0 || dim1 == dim2) not_covered(context, "a diagonal needs two dimensions");
  const Expr side = self.sizes.back() + std::abs(offset);
  std::vector<Expr> sizes(self.sizes.begin(), self.sizes.end() - 1);
  sizes.insert(sizes.begin() + std::min(dim1, dim2), side);
  sizes.insert(sizes.begin() + std::max(dim1, dim2), side);
  return {contiguous_meta(self.dtype, self.device, std::move(sizes))};
}

Metas pixel_shuffle(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Expr& factor = expression(context, 1);
  if (self.rank() < 3) not_covered(context, "fewer than three dimensions");
  std::vector<Expr> sizes = self.sizes;
  const size_t rank = sizes.size();
  if (!context.divisible(sizes[rank - 3], factor * factor))
    not_covered(context, "a channel count that does not fit");
  sizes[rank - 3] = sym::floordiv(sizes[rank - 3], factor * factor);
  sizes[rank - 2] = sizes[rank - 2] * factor;
  sizes[rank - 1] = sizes[rank - 1] * factor;
  return {in_format_of_host(context, self, std::move(sizes))};
}

Metas pixel_unshuffle(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Expr& factor = expression(context, 1);
  if (self.rank() < 3) not_covered(context, "fewer than three dimensions");
  std::vector<Expr> sizes = self.sizes;
  const size_t rank = sizes.size();
  // The kernel of the host copies it as it is.
  const bool is_copied = is_on_host(self.device) && context.equal(element_count(self), 0);
  for (size_t d : {rank - 2, rank - 1}) {
    if (!context.divisible(sizes[d], factor)) not_covered(context, "sizes that do not fit");
    sizes[d] = sym::floordiv(sizes[d], factor);
  }
  if (is_copied) return {dense_like(context, self, self.dtype)};
  sizes[rank - 3] = sizes[rank - 3] * factor * factor;
  return {in_format_of_host(context, self, std::move(sizes))};
}

// PyTorch's meta kernel divides by `groups` unseen.
Metas channel_shuffle(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const int64_t groups = integer(context, 1);
  if (self.rank() < 3) refused_by_eager(context, "fewer than three dimensions");
  if (groups < 1) refused_by_eager(context, "a number of groups below 1");
  if (!context.divisible(self.sizes[1], Expr(groups)))
    refused_by_eager(context, "channels that do not fit the groups");
  return {in_format_of_host(context, self, self.sizes)};
}

namespace {

// The number of positions of each sliding window.
Expr window_count(const ShapeContext& context, const std::vector<Expr>& spatial, size_t kernel_at,
                  size_t dilation_at, size_t padding_at, size_t stride_at) {
  Expr count = 1;
  for (size_t d = 0; d < 2; ++d) {
    const Expr reach = list(context, dilation_at)[d] * (list(context, kernel_at)[d] - 1) + 1;
    const Expr room = spatial[d] + list(context, padding_at)[d] * 2 - reach;
    if (!context.require(sym::less_equal(0, room))) not_covered(context, "a window larger than the input");
    count = count * (sym::floordiv(room, list(context, stride_at)[d]) + 1);
  }
  return count;
}

void need_pairs(const ShapeContext& context, std::initializer_list<size_t> positions) {
  for (size_t i : positions)
    if (list(context, i).size() != 2) not_covered(context, "lists that are no pairs");
}

// Sizes and steps of windows, which eager refuses unless they are positive.
void need_positive(const ShapeContext& context, std::initializer_list<size_t> arguments) {
  for (const size_t argument : arguments)
    for (const int64_t value : integers(context, argument))
      if (value <= 0) not_covered(context, "a window of no size");
}

}  // namespace

Metas patches_to_columns(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() != 3 && self.rank() != 4) not_covered(context, "a tensor of another rank");
  need_pairs(context, {1, 2, 3, 4});
  need_positive(context, {1, 2, 4});
  const size_t batch = self.sizes.size() - 3;
  for (size_t d = batch; d < self.sizes.size(); ++d)
    if (context.equal(self.sizes[d], 0)) refused_by_eager(context, "an image without elements");
  std::vector<Expr> sizes(self.sizes.begin(), self.sizes.begin() + static_cast<std::ptrdiff_t>(batch));
  sizes.push_back(self.sizes[batch] * list(context, 1)[0] * list(context, 1)[1]);
  const std::vector<Expr> spatial(self.sizes.end() - 2, self.sizes.end());
  sizes.push_back(window_count(context, spatial, 1, 2, 3, 4));
  return {contiguous_meta(self.dtype, self.device, std::move(sizes))};
}

Metas columns_to_patches(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() != 2 && self.rank() != 3) not_covered(context, "a tensor of another rank");
  need_pairs(context, {1, 2});
  need_positive(context, {2});
  std::vector<Expr> sizes(self.sizes.begin(), self.sizes.end() - 1);
  sizes.back() = sym::floordiv(sizes.back(), list(context, 2)[0] * list(context, 2)[1]);
  sizes.push_back(list(context, 1)[0]);
  sizes.push_back(list(context, 1)[1]);
  return {contiguous_meta(self.dtype, self.device, std::move(sizes))};
}

}  // namespace oxy::ops::shapes
