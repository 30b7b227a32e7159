#include "ops/indexing/concatenation_shapes.h"

#include <vector>

#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"
#include "ops/indexing/shapes.h"
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
    std::vector<Expr> sizes = first.sizes;
    sizes.insert(sizes.begin() + dim, Expr(static_cast<int64_t>(alike.size())));
    std::optional<TensorMeta> out = viewed(context, joined, std::move(sizes));
    if (!out) not_covered(context, "parts of this layout");
    return {std::move(*out)};
  }
  for (TensorMeta& part : alike) {  // behind the last one
    part.sizes.emplace_back(1);
    part.strides.emplace_back(1);
  }
  return {concatenated(context, pointers_to(alike), dim)};
}

}  // namespace oxy::ops::shapes
