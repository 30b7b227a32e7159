#include "ops/indexing/shapes.h"

#include <algorithm>
#include <cstdlib>

#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"
#include "ops/views/view_strides.h"

namespace oxy::ops::shapes {
namespace {

// Eager takes such a part for nothing, among parts of whatever rank.
bool is_skipped(const ShapeContext& context, const TensorMeta& part, int64_t rank) {
  if (part.rank() != 1) return false;
  if (part.sizes[0].is_constant()) return part.sizes[0] == Expr(0);
  return rank != 1 && context.equal(part.sizes[0], 0);
}

// The format of a concatenation: that which all parts suggest.
MemoryFormat common_format(const ShapeContext& context, std::span<const TensorMeta* const> parts,
                           size_t along) {
  std::vector<bool> keeps(parts.front()->sizes.size(), true);
  if (along < keeps.size()) keeps[along] = false;
  const MemoryFormat first = suggested_format(context, *parts.front(), keeps);
  for (const TensorMeta* part : parts.subspan(1)) {
    if (first == MemoryFormat::Contiguous) return first;
    if (part->sizes.size() != keeps.size() || suggested_format(context, *part, keeps) != first)
      return MemoryFormat::Contiguous;
  }
  return first;
}

TensorMeta concatenated(const ShapeContext& context, std::span<const TensorMeta* const> parts, int64_t dim) {
  Promotion promotion(context.default_dtype());
  int64_t rank = 1;
  for (const TensorMeta* part : parts) {
    promotion.add_tensor(*part);
    if (part->rank() == 0) not_covered(context, "a part without dimensions");
    if (part->rank() != 1) rank = part->rank();
  }
  const TensorMeta* first = nullptr;
  std::vector<Expr> sizes;
  size_t along = 0;
  for (const TensorMeta* part : parts) {
    if (is_skipped(context, *part, rank)) continue;
    if (part->rank() != rank) not_covered(context, "parts of different ranks");
    if (first == nullptr) {
      first = part;
      sizes = part->sizes;
      along = static_cast<size_t>(wrap_dim(context, dim, rank));
      continue;
    }
    for (size_t d = 0; d < part->sizes.size(); ++d)
      if (d != along && !context.equal(part->sizes[d], sizes[d]))
        not_covered(context, "parts whose other sizes differ");
    sizes[along] = sizes[along] + part->sizes[along];
  }
  if (first == nullptr) return contiguous_meta(promotion.result(), parts.front()->device, {0});
  const TensorMeta out = contiguous_meta(promotion.result(), first->device, std::move(sizes));
  return with_format(context, out, out.dtype, common_format(context, parts, along));
}

std::vector<const TensorMeta*> pointers_to(const Metas& metas) {
  std::vector<const TensorMeta*> pointers;
  for (const TensorMeta& meta : metas) pointers.push_back(&meta);
  return pointers;
}

std::vector<const TensorMeta*> parts_of(const ShapeContext& context) {
  std::vector<const TensorMeta*> parts;
  for (graph::ValueId id : tensors(context, 0)) parts.push_back(&context.meta_of(id));
  if (parts.empty()) not_covered(context, "an empty list");
  return parts;
}

}  // namespace

Metas cat(const ShapeContext& context) {
  return {concatenated(context, parts_of(context), integer(context, 1))};
}

Metas stack(const ShapeContext& context) {
  const TensorMeta first = *parts_of(context).front();
  Metas alike;
  for (const TensorMeta* part : parts_of(context)) {
    if (!are_equal(context, part->sizes, first.sizes)) not_covered(context, "parts of different sizes");
    alike.emplace_back(*part).sizes = first.sizes;
  }
  const int64_t dim = wrap_dim(context, integer(context, 1), first.rank() + 1);
  if (dim < first.rank()) {  // a concatenation along that dimension, which is then split in two
    const TensorMeta joined = concatenated(context, pointers_to(alike), dim);
    TensorMeta out = joined;
    out.sizes = first.sizes;
    out.sizes.insert(out.sizes.begin() + dim, Expr(static_cast<int64_t>(alike.size())));
    auto strides = view_strides(context, joined, out.sizes);
    if (!strides) not_covered(context, "parts of this layout");
    out.strides = std::move(*strides);
    return {out};
  }
  for (TensorMeta& part : alike) {  // behind the last one
    part.sizes.emplace_back(1);
    part.strides.emplace_back(1);
  }
  return {concatenated(context, pointers_to(alike), dim)};
}

Metas constant_pad(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<Expr>& pad = list(context, 1);
  if (pad.size() % 2 != 0 || pad.size() / 2 > self.sizes.size())
    not_covered(context, "padding of other dimensions");
  std::vector<Expr> sizes = self.sizes;
  bool grows = false;
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    Expr& size = sizes[self.sizes.size() - 1 - k];
    grows |= !(context.less_equal(pad[2 * k], 0) && context.less_equal(pad[2 * k + 1], 0));
    // What negative padding leaves of the dimension, before anything is added.
    const Expr left = size + sym::min(pad[2 * k], 0) + sym::min(pad[2 * k + 1], 0);
    if (!is_size(context, left)) not_covered(context, "a negative size");
    size = size + pad[2 * k] + pad[2 * k + 1];
  }
  if (!grows) {  // a copy of a slice
    TensorMeta narrowed = self;
    narrowed.sizes = std::move(sizes);
    return {dense_like(context, narrowed, self.dtype)};
  }
  return {in_suggested_format(context, self, std::move(sizes))};
}

Metas border_pad(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<Expr>& pad = list(context, 1);
  const size_t spatial = pad.size() / 2;
  if (self.sizes.size() != spatial + 1 && self.sizes.size() != spatial + 2)
    not_covered(context, "padding of other dimensions");
  std::vector<Expr> sizes = self.sizes;
  for (size_t k = 0; k < spatial; ++k) {
    Expr& size = sizes[sizes.size() - 1 - k];
    const bool reflects = context.schema().name.find("reflection") != std::string::npos;
    if (reflects && !(context.less(pad[2 * k], size) && context.less(pad[2 * k + 1], size)))
      not_covered(context, "padding wider than the input");
    size = size + pad[2 * k] + pad[2 * k + 1];
    if (!context.less(0, size)) not_covered(context, "an empty result");
  }
  return {in_suggested_format(context, self, std::move(sizes))};
}

namespace {

// Indices into dimension `dim` of `self`: elsewhere they stay inside `within`.
void need_element_indices(const ShapeContext& context, const TensorMeta& self, const TensorMeta& index,
                          size_t dim) {
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32)
    refused_by_eager(context, "indices of this type");
  if (self.rank() == 0 || index.rank() != self.rank()) not_covered(context, "indices of another rank");
  if (dim < self.sizes.size()) expect_elements(context, self.sizes[dim]);
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (d != dim && !context.less_equal(index.sizes[d], self.sizes[d]))
      not_covered(context, "more indices than elements");
}

}  // namespace

Metas gather(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& index = context.tensor(2);
  need_element_indices(context, self, index, static_cast<size_t>(dim_argument(context, 1, self.rank())));
  return {contiguous_meta(self.dtype, self.device, index.sizes)};
}

Metas contiguous_like_first(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas scatter(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& index = context.tensor(2);
  need_element_indices(context, self, index, static_cast<size_t>(dim_argument(context, 1, self.rank())));
  if (context.is_tensor(3)) {
    const TensorMeta& source = context.tensor(3);
    if (source.dtype != self.dtype) not_covered(context, "a source of another type");
    need_element_indices(context, source, index, source.sizes.size());
  }
  return contiguous_like_first(context);
}

Metas index_along(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& index = context.tensor(2);
  const auto dim = static_cast<size_t>(dim_argument(context, 1, self.rank()));
  if ((index.dtype != DType::Int64 && index.dtype != DType::Int32) || index.rank() > 1)
    not_covered(context, "indices of this type or rank");
  const TensorMeta& source = context.tensor(3);
  if (source.dtype != self.dtype || self.rank() == 0 || source.rank() != self.rank())
    not_covered(context, "a source of another type or rank");
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (!context.equal(source.sizes[d], d == dim ? element_count(index) : self.sizes[d]))
      not_covered(context, "a source of another shape");
  return contiguous_like_first(context);
}

// Masks take as many dimensions as they have, and are of the same size there.
void check_indices(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  size_t d = 0;
  for (graph::ValueId id : tensors(context, 1)) {
    if (id == graph::kNoValue) {
      ++d;
      continue;
    }
    const TensorMeta& index = context.meta_of(id);
    const bool is_mask = index.dtype == DType::Bool || index.dtype == DType::UInt8;
    if (!is_mask && index.dtype != DType::Int64 && index.dtype != DType::Int32)
      refused_by_eager(context, "indices of this type");
    for (size_t i = 0; is_mask && i < index.sizes.size(); ++i)
      if (d + i >= self.sizes.size() || context.less(index.sizes[i], self.sizes[d + i]) ||
          context.less(self.sizes[d + i], index.sizes[i]))
        refused_by_eager(context, "a mask of another shape");
    d += is_mask ? index.sizes.size() : 1;
  }
  if (d > self.sizes.size()) not_covered(context, "more indices than dimensions");
}

namespace {

// Which dimensions integer indices pick elements of, and where the picked ones lie in the result.
struct Picked {
  std::vector<graph::ValueId> ids;         // by dimension of the indexed tensor
  std::vector<const TensorMeta*> indices;  // those there are
  std::vector<Expr> shape;                 // of the indices, broadcast
  size_t before = 0;                       // how many other dimensions come before these in the result
  bool adjacent = true;
};

Picked picked_by(const ShapeContext& context, const TensorMeta& self) {
  Picked picked{.ids = tensors(context, 1)};
  if (picked.ids.size() > self.sizes.size()) not_covered(context, "more indices than dimensions");
  picked.ids.resize(self.sizes.size(), graph::kNoValue);
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (picked.ids[d] != graph::kNoValue) expect_elements(context, self.sizes[d]);
  for (graph::ValueId id : picked.ids) {
    if (id == graph::kNoValue) continue;
    picked.indices.push_back(&context.meta_of(id));
    const DType dtype = picked.indices.back()->dtype;
    if (dtype == DType::Bool || dtype == DType::UInt8)
      not_covered(context, "a mask as index: the size of the result depends on data");
    if (dtype != DType::Int64 && dtype != DType::Int32) refused_by_eager(context, "indices of this type");
  }
  if (picked.indices.empty()) not_covered(context, "no index");
  picked.shape = broadcast(context, picked.indices);
  const auto is_indexed = [&](size_t d) { return picked.ids[d] != graph::kNoValue; };
  while (!is_indexed(picked.before)) ++picked.before;
  size_t end = picked.before;
  while (end < picked.ids.size() && is_indexed(end)) ++end;
  picked.adjacent = end - picked.before == picked.indices.size();
  if (!picked.adjacent) picked.before = 0;  // indexed dimensions that are apart come first in the result
  return picked;
}

std::vector<Expr> picked_sizes(const TensorMeta& self, const Picked& picked) {
  std::vector<Expr> sizes;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (picked.ids[d] == graph::kNoValue) sizes.push_back(self.sizes[d]);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(picked.before), picked.shape.begin(),
               picked.shape.end());
  return sizes;
}

void need_expandable(const ShapeContext& context, const std::vector<Expr>& from,
                     const std::vector<Expr>& to) {
  if (from.size() > to.size()) refused_by_eager(context, "values of more dimensions than the indices pick");
  for (size_t d = 0; d < from.size(); ++d) {
    const Expr& wanted = to[to.size() - from.size() + d];
    if (context.equal(from[d], wanted) || context.equal(from[d], 1)) continue;
    if (context.less(from[d], wanted) || context.less(wanted, from[d]))
      refused_by_eager(context, "values of another shape than the indices pick");
    not_covered(context, "values of unknown shape");
  }
}

}  // namespace

Metas index_put(const ShapeContext& context) {
  check_indices(context);
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& values = context.tensor(2);
  const bool has_mask = std::ranges::any_of(tensors(context, 1), [&](graph::ValueId id) {
    if (id == graph::kNoValue) return false;
    const DType dtype = context.meta_of(id).dtype;
    return dtype == DType::Bool || dtype == DType::UInt8;
  });
  if (values.dtype != self.dtype) {
    if (!has_mask) refused_by_eager(context, "values of another type");
    not_covered(context, "values of another type");  // which may be what one mask fills
  }
  if (!has_mask) need_expandable(context, values.sizes, picked_sizes(self, picked_by(context, self)));
  return dense_like_first(context);
}

Metas dense_like_first(const ShapeContext& context) {
  return {dense_like(context, context.tensor(0), context.tensor(0).dtype)};
}

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

Metas masked_scatter(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta* const operands[] = {&self, &context.tensor(1)};
  return {contiguous_meta(self.dtype, self.device, broadcast(context, operands))};
}

Metas strided_like_first(const ShapeContext& context) {
  return {strided_like(context, context.tensor(0))};
}

Metas select_scatter(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() == 0) refused_by_eager(context, "a tensor without dimensions");
  const auto dim = static_cast<size_t>(dim_argument(context, 2, self.rank()));
  const Expr& index = expression(context, 3);
  if (context.less_equal(self.sizes[dim], index) || context.less(index + self.sizes[dim], 0))
    refused_by_eager(context, "an index out of range");
  std::vector<Expr> selected = self.sizes;
  selected.erase(selected.begin() + static_cast<std::ptrdiff_t>(dim));
  if (!are_equal(context, context.tensor(1).sizes, selected))
    refused_by_eager(context, "a source of another shape");
  return strided_like_first(context);
}

Metas as_strided_scatter(const ShapeContext& context) {
  const std::vector<Expr>& sizes = list(context, 2);
  if (!are_equal(context, context.tensor(1).sizes, sizes) || list(context, 3).size() != sizes.size())
    refused_by_eager(context, "a source of another shape");
  return strided_like_first(context);
}

Metas index(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const auto [ids, indices, shape, before, adjacent] = picked_by(context, self);
  const auto is_indexed = [&ids](size_t d) { return ids[d] != graph::kNoValue; };

  // The operands as the element-wise machinery sees them: the tensor with stride 0 along the indices, then
  // each index with the tensor's other dimensions around it as size 1.
  TensorMeta source = self;
  source.sizes.clear();
  source.strides.clear();
  size_t after = 0;
  const auto append_indices = [&] {
    for (const Expr& size : shape) {
      source.sizes.push_back(size);
      source.strides.push_back(0);
    }
  };
  if (before == 0) append_indices();
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    if (is_indexed(d)) continue;
    source.sizes.push_back(self.sizes[d]);
    source.strides.push_back(self.strides[d]);
    if (before > 0 && source.sizes.size() == before) append_indices();
    if (!adjacent || d >= before) ++after;
  }
  std::vector<TensorMeta> widened;
  widened.reserve(indices.size());
  std::vector<const TensorMeta*> operands = {&source};
  for (const TensorMeta* meta : indices) {
    TensorMeta& w = widened.emplace_back();
    const size_t missing = shape.size() - meta->sizes.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool absent = d < missing;
      w.sizes.push_back(shape[d]);
      const bool stretched = absent || is_repeated(context, meta->sizes[d - missing], shape[d]);
      w.strides.push_back(stretched ? Expr(0) : meta->strides[d - missing]);
    }
    std::vector<Expr> sizes(before, Expr(1));
    sizes.insert(sizes.end(), w.sizes.begin(), w.sizes.end());
    sizes.insert(sizes.end(), after, Expr(1));
    w.strides = view_strides(context, w, sizes).value_or(contiguous_strides(sizes));
    w.sizes = std::move(sizes);
    operands.push_back(&w);
  }
  TensorMeta out = element_wise_layout(context, operands);
  out.dtype = self.dtype;
  out.device = self.device;
  return {out};
}

Metas index_select(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& index = context.tensor(2);
  if (index.rank() > 1) not_covered(context, "indices of more than one dimension");
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32)
    refused_by_eager(context, "indices of this type");
  std::vector<Expr> sizes = self.sizes;
  const auto dim = static_cast<size_t>(dim_argument(context, 1, self.rank()));
  if (!sizes.empty()) {
    expect_elements(context, sizes[dim]);
    sizes[dim] = element_count(index);
  }
  return {contiguous_meta(self.dtype, self.device, std::move(sizes))};
}

Metas take(const ShapeContext& context) {
  return {contiguous_meta(context.tensor(0).dtype, context.tensor(0).device, context.tensor(1).sizes)};
}

Metas embedding(const ShapeContext& context) {
  const TensorMeta& weight = context.tensor(0);
  const TensorMeta& indices = context.tensor(1);
  if (weight.rank() != 2) not_covered(context, "a weight that is no matrix");
  expect_elements(context, weight.sizes[0]);
  if (indices.dtype != DType::Int64 && indices.dtype != DType::Int32)
    refused_by_eager(context, "indices of this type");
  std::vector<Expr> sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return {contiguous_meta(weight.dtype, weight.device, std::move(sizes))};
}

// (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
// padding_idx): bags, the bag of each index, the sizes of bags, and where maxima come from.
static Metas bags_of(const ShapeContext& context, bool tells_all_sizes) {
  const TensorMeta& weight = context.tensor(0);
  const TensorMeta& indices = context.tensor(1);
  const TensorMeta& offsets = context.tensor(2);
  constexpr int64_t kSum = 0, kMean = 1, kMaximum = 2;
  const int64_t mode = integer(context, 4);
  if (!(weight.device == Device{})) not_covered(context, "results of a kernel of this device");
  if (weight.rank() != 2 || indices.rank() != 1 || offsets.rank() != 1)
    not_covered(context, "operands of other ranks");
  const auto is_index = [](DType dtype) { return dtype == DType::Int64 || dtype == DType::Int32; };
  if (!is_index(indices.dtype) || !is_index(offsets.dtype)) refused_by_eager(context, "indices of this type");
  if (mode != kSum && mode != kMean && mode != kMaximum) not_covered(context, "this mode");
  expect_elements(context, weight.sizes[0]);
  const TensorMeta* const factors = optional_tensor(context, 6);
  if (factors != nullptr &&
      (mode != kSum || factors->dtype != weight.dtype || !are_equal(context, factors->sizes, indices.sizes)))
    not_covered(context, "factors that do not fit");
  const auto has_stride_one = [&](const TensorMeta& meta, size_t d) {
    return context.equal(meta.strides.at(d), 1);
  };
  // FBGEMM's kernel does not tell the bags of indices.
  const bool is_fast =
      mode == kSum && integer(context, 8) < 0 && has_stride_one(weight, 1) &&
      (weight.dtype == DType::Float32 || weight.dtype == DType::Float16 || weight.dtype == DType::BFloat16) &&
      (factors == nullptr || has_stride_one(*factors, 0));
  const DType type = promote(indices.dtype, offsets.dtype);
  const Expr bags = flag(context, 7) ? offsets.sizes[0] - 1 : offsets.sizes[0];
  if (context.less(bags, 0)) not_covered(context, "no offset");
  const auto made = [&](DType dtype, std::vector<Expr> sizes) {
    return contiguous_meta(dtype, weight.device, std::move(sizes));
  };
  const TensorMeta sizes = made(type, {mode == kSum && !tells_all_sizes ? offsets.sizes[0] : bags});
  return {made(weight.dtype, {bags, weight.sizes[1]}), made(type, {is_fast ? Expr(0) : indices.sizes[0]}),
          sizes, mode == kMaximum ? made(type, {bags, weight.sizes[1]}) : sizes};
}

Metas embedding_bag(const ShapeContext& context) {
  return bags_of(context, true);
}

// Nobody asks for the sizes of bags that are added up.
Metas embedding_bag_forward(const ShapeContext& context) {
  return bags_of(context, false);
}

Metas gradient_of_windows(const ShapeContext& context) {
  return {contiguous_meta(context.tensor(0).dtype, context.tensor(0).device, list(context, 1))};
}

// (grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
// sparse,
// ...)
Metas gradient_of_bag_table(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  if (!(grad.device == Device{}) || grad.rank() != 2 || flag(context, 9))
    not_covered(context, "a gradient of this kind");
  expect_elements(context, expression(context, 6));
  return {contiguous_meta(grad.dtype, grad.device, {expression(context, 6), grad.sizes[1]})};
}

// (grad, indices, offset2bag, bag_size, maximum_indices, num_weights, ...)
Metas embedding_bag_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  if (!(grad.device == Device{}) || grad.rank() != 2) not_covered(context, "a gradient of this kind");
  expect_elements(context, expression(context, 5));
  return {contiguous_meta(grad.dtype, grad.device, {expression(context, 5), grad.sizes[1]})};
}

// (grad, weight, indices, ...)
Metas gradient_of_bag_weights(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  if (!(grad.device == Device{})) not_covered(context, "a gradient on this device");
  return {contiguous_meta(grad.dtype, grad.device, {context.tensor(2).sizes.at(0)})};
}

Metas embedding_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  expect_elements(context, expression(context, 2));
  std::vector<Expr> indices = grad.sizes;
  indices.pop_back();
  if (!are_equal(context, indices, context.tensor(1).sizes)) not_covered(context, "indices of another shape");
  return {contiguous_meta(grad.dtype, grad.device, {expression(context, 2), grad.sizes.back()})};
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
    TensorMeta tail = current;  // each round joins two slices
    TensorMeta head = current;
    tail.sizes[dim] = sym::mod(list(context, 1)[i], size);
    head.sizes[dim] = size - tail.sizes[dim];
    const TensorMeta* const parts[] = {&tail, &head};
    current = concatenated(context, parts, static_cast<int64_t>(dim));
  }
  return {current};
}

Metas bucketize(const ShapeContext& context) {
  if (!context.is_tensor(0)) not_covered(context, "a number to look up");
  const TensorMeta& self = context.tensor(0);
  return {contiguous_meta(flag(context, 2) ? DType::Int32 : DType::Int64, self.device, self.sizes)};
}

Metas search_sorted(const ShapeContext& context) {
  if (!context.is_tensor(1)) not_covered(context, "a number to look up");
  const TensorMeta& self = context.tensor(1);
  return {contiguous_meta(flag(context, 2) ? DType::Int32 : DType::Int64, self.device, self.sizes)};
}

Metas is_in(const ShapeContext& context) {
  if (!context.is_tensor(0)) {
    if (!is_number(context.arg(0))) not_covered(context, "elements that are no tensor");
    return {contiguous_meta(DType::Bool, context.tensor(1).device, {})};
  }
  const TensorMeta& self = context.tensor(0);
  return {contiguous_meta(DType::Bool, self.device, self.sizes)};
}

Metas zeros_of_input(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  return {contiguous_meta(grad.dtype, grad.device, list(context, 1))};
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
  return {in_suggested_format(context, self, std::move(sizes))};
}

// PyTorch's meta kernel divides by `groups` unseen.
Metas channel_shuffle(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const int64_t groups = integer(context, 1);
  if (self.rank() < 3) refused_by_eager(context, "fewer than three dimensions");
  if (groups < 1) refused_by_eager(context, "a number of groups below 1");
  if (!context.divisible(self.sizes[1], Expr(groups)))
    refused_by_eager(context, "channels that do not fit the groups");
  return {in_suggested_format(context, self)};
}

Metas pixel_unshuffle(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Expr& factor = expression(context, 1);
  if (self.rank() < 3) not_covered(context, "fewer than three dimensions");
  std::vector<Expr> sizes = self.sizes;
  const size_t rank = sizes.size();
  const bool is_empty = context.equal(element_count(self), 0);
  for (size_t d : {rank - 2, rank - 1}) {
    if (!context.divisible(sizes[d], factor)) not_covered(context, "sizes that do not fit");
    sizes[d] = sym::floordiv(sizes[d], factor);
  }
  if (is_empty) return {dense_like(context, self, self.dtype)};  // eager copies it as it is
  sizes[rank - 3] = sizes[rank - 3] * factor * factor;
  return {in_suggested_format(context, self, std::move(sizes))};
}

namespace {

// The number of positions of each sliding window.
Expr window_count(const ShapeContext& context, const std::vector<Expr>& spatial, size_t kernel_at,
                  size_t dilation_at, size_t padding_at, size_t stride_at) {
  Expr count = 1;
  for (size_t d = 0; d < 2; ++d) {
    const Expr reach = list(context, dilation_at)[d] * (list(context, kernel_at)[d] - 1) + 1;
    const Expr room = spatial[d] + list(context, padding_at)[d] * 2 - reach;
    if (context.less(room, 0)) not_covered(context, "a window larger than the input");
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

Metas border_pad_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  const size_t padded = list(context, 2).size() / 2;
  if (self.sizes.size() < padded + 1) not_covered(context, "an input of another rank");
  return {in_suggested_format(context, self)};
}

}  // namespace oxy::ops::shapes
