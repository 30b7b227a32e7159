#include "ops/indexing/shapes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"

namespace oxy::ops::shapes {

Metas constant_pad(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<Expr>& pad = list(context, 1);
  if (pad.size() % 2 != 0 || pad.size() / 2 > self.sizes.size())
    not_covered(context, "padding of other dimensions");
  std::vector<Expr> sizes = self.sizes;
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    Expr& size = sizes[self.sizes.size() - 1 - k];
    // What negative padding leaves of the dimension, before anything is added.
    const Expr left = size + sym::min(pad[2 * k], 0) + sym::min(pad[2 * k + 1], 0);
    if (!is_size(context, left)) not_covered(context, "a negative size");
    size = size + pad[2 * k] + pad[2 * k + 1];
  }
  TensorMeta narrowed = self;
  narrowed.sizes = sizes;
  const TensorMeta copy = dense_like(context, narrowed, self.dtype);
  TensorMeta padded = in_suggested_format(context, self, std::move(sizes));
  // Where nothing is added, it is a copy of a slice.
  const bool is_either = copy.strides == padded.strides;
  const bool grows =
      is_either || !std::ranges::all_of(pad, [&](const Expr& width) { return context.less_equal(width, 0); });
  return {grows ? std::move(padded) : copy};
}

Metas border_pad(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<Expr>& pad = list(context, 1);
  const size_t spatial = pad.size() / 2;
  if (self.sizes.size() != spatial + 1 && self.sizes.size() != spatial + 2)
    not_covered(context, "padding of other dimensions");
  std::vector<Expr> sizes = self.sizes;
  const size_t batch = sizes.size() - spatial - 1;
  for (size_t d = batch; d < sizes.size(); ++d)
    if (!context.require(sym::less(0, sizes[d])))
      not_covered(context, "an input without elements that is no empty batch");
  for (size_t k = 0; k < spatial; ++k) {
    Expr& size = sizes[sizes.size() - 1 - k];
    const bool reflects = context.schema().name.find("reflection") != std::string::npos;
    if (reflects &&
        !(context.require(sym::less(pad[2 * k], size)) && context.require(sym::less(pad[2 * k + 1], size))))
      not_covered(context, "padding wider than the input");
    size = size + pad[2 * k] + pad[2 * k + 1];
    if (!context.require(sym::less(0, size))) not_covered(context, "an empty result");
  }
  return {in_format_of_host(context, self, std::move(sizes))};
}

Metas border_pad_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  const size_t padded = list(context, 2).size() / 2;
  if (self.sizes.size() < padded + 1) not_covered(context, "an input of another rank");
  return {in_format_of_host(context, self, self.sizes)};
}

}  // namespace oxy::ops::shapes
