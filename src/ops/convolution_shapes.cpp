#include "ops/convolution_shapes.h"

#include "ops/element_wise.h"

namespace oxy::ops::shapes {
namespace {

// Convolutions on the CPU run channels-last if one of their operands is, except in double precision.
bool runs_channels_last(const TensorMeta& input, const TensorMeta& weight) {
  if (input.dtype == DType::Float64 || weight.dtype == DType::Float64) return false;
  return suggested_format(input) != MemoryFormat::Contiguous ||
         suggested_format(weight) != MemoryFormat::Contiguous;
}

TensorMeta in_convolution_format(const ShapeContext& context, const TensorMeta& meta, bool channels_last) {
  if (!channels_last || meta.rank() < 4) return contiguous_meta(meta.dtype, meta.device, meta.sizes);
  return with_format(context, meta, meta.dtype,
                     meta.rank() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}

// A list argument with one number for all spatial dimensions or one each.
Expr item(const ShapeContext& context, size_t i, size_t d, size_t spatial) {
  const std::vector<Expr>& items = list(context, i);
  if (items.size() == 1) return items[0];
  if (items.size() != spatial) not_covered(context, "a list of another length");
  return items[d];
}

}  // namespace

Metas convolution(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(0);
  const TensorMeta& weight = context.tensor(1);
  const bool transposed = flag(context, 6);
  const Expr& groups = expression(context, 8);
  if (input.rank() < 3 || input.rank() != weight.rank())
    not_covered(context, "an input or weight of another rank");
  if (input.dtype != weight.dtype) not_covered(context, "a weight of another type");
  const Expr& channels = weight.sizes[transposed ? 0 : 1];
  if (!sym::known_equal(input.sizes[1], transposed ? channels : channels * groups))
    not_covered(context, "an input of another number of channels");
  const size_t spatial = input.sizes.size() - 2;
  std::vector<Expr> sizes = {input.sizes[0], transposed ? weight.sizes[1] * groups : weight.sizes[0]};
  for (size_t d = 0; d < spatial; ++d) {
    const Expr& size = input.sizes[d + 2];
    const Expr stride = item(context, 3, d, spatial);
    const Expr padding = item(context, 4, d, spatial) * 2;
    const Expr reach = item(context, 5, d, spatial) * (weight.sizes[d + 2] - 1);
    const Expr out = transposed ? (size - 1) * stride - padding + reach + item(context, 7, d, spatial) + 1
                                : sym::floordiv(size + padding - reach - 1, stride) + 1;
    if (!sym::known_less(0, out)) not_covered(context, "a kernel larger than the input");
    sizes.push_back(out);
  }
  const TensorMeta out = contiguous_meta(input.dtype, input.device, std::move(sizes));
  return {in_convolution_format(context, out, runs_channels_last(input, weight))};
}

Metas convolution_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  const TensorMeta& input = context.tensor(1);
  const TensorMeta& weight = context.tensor(2);
  const auto* mask = std::get_if<std::vector<bool>>(&context.arg(10));
  if (mask == nullptr || mask->size() != 3 || !(*mask)[0] || !(*mask)[1] || !(*mask)[2])
    not_covered(context, "gradients that are left out");
  const bool channels_last = runs_channels_last(input, weight);
  return {in_convolution_format(context, input, channels_last),
          in_convolution_format(context, weight, channels_last),
          contiguous_meta(grad.dtype, grad.device, {grad.sizes[1]})};
}

}  // namespace oxy::ops::shapes
