#include "ops/indexing/shapes.h"

#include <algorithm>
#include <vector>

#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"
#include "ops/core/sizes_of_one.h"
#include "ops/views/view_strides.h"

namespace oxy::ops::shapes {

namespace {

// Indices into dimension `dim` of `self`: elsewhere they stay inside `within`.
void need_element_indices(const ShapeContext& context, const TensorMeta& self, const TensorMeta& index,
                          size_t dim) {
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32)
    refused_by_eager(context, "indices of this type");
  if (self.rank() == 0 || index.rank() != self.rank()) not_covered(context, "indices of another rank");
  if (dim < self.sizes.size()) expect_elements(context, self.sizes[dim]);
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (d != dim && !context.require(sym::less_equal(index.sizes[d], self.sizes[d])))
      not_covered(context, "more indices than elements");
}

}  // namespace

Metas gather(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& index = context.tensor(2);
  need_element_indices(context, self, index, static_cast<size_t>(dim_argument(context, 1, self.rank())));
  return {contiguous_meta(self.dtype, self.device, index.sizes)};
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

namespace {

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

TensorMeta with_ones(TensorMeta meta, const std::vector<Expr>& ones) {
  const auto one = [&ones](int64_t id) -> std::optional<Expr> {
    const auto is_it = [id](const Expr& e) { return e.variable_id() == id; };
    return std::ranges::any_of(ones, is_it) ? std::optional(Expr(1)) : std::nullopt;
  };
  for (std::vector<Expr>* list : {&meta.sizes, &meta.strides})
    for (Expr& e : *list) e = sym::substitute(e, one);
  return meta;
}

// Eager may give a dimension of size 1 a stride that one of more elements would not have: it does where the
// tensor has no gaps because some sizes are 1. The order of a result's dimensions comes from such strides as
// well, so which of these sizes are 1 is decided.
void decide_ones_of_source(const ShapeContext& context, const TensorMeta& self, const Picked& picked) {
  if (context.questions() == nullptr || is_contiguous(self)) return;
  std::vector<Expr> may_be_one;
  for (const Expr& size : self.sizes)
    if (size.kind() == sym::Kind::Variable && std::ranges::find(may_be_one, size) == may_be_one.end())
      may_be_one.push_back(size);
  for_each_set_of_ones(std::move(may_be_one), {}, [&](const std::vector<Expr>& ones) {
    const TensorMeta meta = with_ones(self, ones);
    if (!is_contiguous(meta)) return;
    const std::vector<Expr> without_gaps = contiguous_strides(meta.sizes);
    bool may_differ = false;
    for (size_t d = 0; d < meta.sizes.size(); ++d)
      may_differ |= picked.ids[d] == graph::kNoValue && meta.strides[d] != without_gaps[d];
    if (may_differ) decide_ones(*context.questions(), ones);
  });
}

}  // namespace

Metas index(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Picked picked = picked_by(context, self);
  decide_ones_of_source(context, self, picked);
  const auto& [ids, indices, shape, before, adjacent] = picked;
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

// PyTorch's meta kernel of the in-place form does not look.
void need_indices_that_broadcast(const ShapeContext& context, bool has_mask) {
  std::vector<const TensorMeta*> indices;
  for (graph::ValueId id : tensors(context, 1))
    if (id != graph::kNoValue) indices.push_back(&context.meta_of(id));
  if (has_mask && indices.size() > 1)
    refused_by_eager(context, "a mask beside other indices, as many as it is true or not");
  if (has_mask) return;
  try {
    broadcast(context, indices);
  } catch (const Unsupported&) {
    refused_by_eager(context, "indices that do not broadcast");
  }
}

Metas index_put(const ShapeContext& context) {
  check_indices(context);
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& values = context.tensor(2);
  const bool has_mask = std::ranges::any_of(tensors(context, 1), [&](graph::ValueId id) {
    if (id == graph::kNoValue) return false;
    const DType dtype = context.meta_of(id).dtype;
    return dtype == DType::Bool || dtype == DType::UInt8;
  });
  need_indices_that_broadcast(context, has_mask);
  if (values.dtype != self.dtype) {
    if (!has_mask) refused_by_eager(context, "values of another type");
    not_covered(context, "values of another type");  // which may be what one mask fills
  }
  if (!has_mask) need_expandable(context, values.sizes, picked_sizes(self, picked_by(context, self)));
  return dense_like_first(context);
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
    // Of the other dimensions as well: eager looks at the indices although it picks nothing.
    for (const Expr& size : sizes) expect_elements(context, size);
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
  for (const Expr& size : weight.sizes) expect_elements(context, size);
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

Metas masked_scatter(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta* const operands[] = {&self, &context.tensor(1)};
  return {contiguous_meta(self.dtype, self.device, broadcast(context, operands))};
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

Metas zeros_of_input(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  return {contiguous_meta(grad.dtype, grad.device, list(context, 1))};
}

Metas contiguous_like_first(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas dense_like_first(const ShapeContext& context) {
  return {dense_like(context, context.tensor(0), context.tensor(0).dtype)};
}

Metas diagonal_scatter(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const int64_t offset = integer(context, 2);
  const auto row = static_cast<size_t>(dim_argument(context, 3, self.rank()));
  const auto column = static_cast<size_t>(dim_argument(context, 4, self.rank()));
  if (self.rank() < 2 || row == column) not_covered(context, "no diagonal");
  std::vector<Expr> sizes;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (d != row && d != column) sizes.push_back(self.sizes[d]);
  const Expr rows = self.sizes[row] + std::min<int64_t>(offset, 0);
  const Expr columns = self.sizes[column] - std::max<int64_t>(offset, 0);
  sizes.push_back(sym::max(sym::min(rows, columns), 0));
  if (!are_equal(context, context.tensor(1).sizes, sizes))
    refused_by_eager(context, "a source of another shape");
  return strided_like_first(context);
}

Metas strided_like_first(const ShapeContext& context) {
  return {strided_like(context, context.tensor(0))};
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

}  // namespace oxy::ops::shapes
