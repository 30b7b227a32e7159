#include "ops/convolution/shapes.h"

#include <algorithm>

#include "base/processor.h"
#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"

namespace oxy::ops::shapes {
namespace {

bool are_one(const ShapeContext& context, size_t argument) {
  return std::ranges::all_of(list(context, argument),
                             [&](const Expr& item) { return context.equal(item, 1); });
}

// Whether the oneDNN library runs this convolution; the answer matters for the layout of volumes only, where
// the other implementation knows nothing but contiguous tensors. `groups` is the position of that argument.
bool runs_in_onednn(const ShapeContext& context, const TensorMeta& input, const TensorMeta& weight,
                    size_t groups) {
  if (input.dtype == DType::BFloat16) return onednn_takes_bfloat16();
  if (input.dtype == DType::Float16) return onednn_takes_float16();
  if (input.dtype != DType::Float32) return false;
  const auto rank = weight.sizes.size();
  if (context.has_one_thread() && !context.less(15, input.sizes[0])) {
    // Stride, dilation and the kernel.
    const bool is_plain = are_one(context, groups - 5) && are_one(context, groups - 3) &&
                          context.equal(weight.sizes[rank - 1], 1) &&
                          context.equal(weight.sizes[rank - 2], 1);
    if (is_plain) return false;
  }
  if (context.less(1, expression(context, groups)) || context.less(1, input.sizes[0])) return true;
  if (context.less(3, weight.sizes[rank - 1]) && context.less(3, weight.sizes[rank - 2])) return true;
  return context.less(20480, sym::product(std::span(input.sizes).first(4)));
}

// One of the operands in channels-last order makes the convolution run so.
bool runs_channels_last(const ShapeContext& context, const TensorMeta& input, const TensorMeta& weight,
                        size_t groups) {
  const std::vector<bool> keeps_none(input.sizes.size());
  if (suggested_format(context, input, keeps_none) == MemoryFormat::Contiguous &&
      suggested_format(context, weight, keeps_none) == MemoryFormat::Contiguous)
    return false;
  if (!is_on_host(input.device)) return input.dtype != DType::Float64;  // cuDNN has no such kernels of it
  return input.rank() == 4 || runs_in_onednn(context, input, weight, groups);
}

TensorMeta in_convolution_format(const ShapeContext& context, const TensorMeta& meta, bool channels_last) {
  if (!channels_last) return contiguous_meta(meta.dtype, meta.device, meta.sizes);
  return with_format(context, meta, meta.dtype,
                     meta.rank() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}

// One spatial dimension is computed as two, the first of size 1.
TensorMeta as_image(const TensorMeta& meta) {
  TensorMeta out = meta;
  out.sizes.insert(out.sizes.begin() + 2, Expr(1));
  out.strides.insert(out.strides.begin() + 2, meta.sizes[2] * meta.strides[2]);
  return out;
}

TensorMeta without_image_row(TensorMeta meta) {
  meta.sizes.erase(meta.sizes.begin() + 2);
  meta.strides.erase(meta.strides.begin() + 2);
  return meta;
}

// Whether a line is contiguous. Strides of dimensions of size 1 do not count.
bool is_contiguous_line(const ShapeContext& context, const TensorMeta& line) {
  if (is_contiguous(line)) return true;
  Expr expected = 1;
  for (size_t d = line.sizes.size(); d-- > 0;) {
    if (line.strides[d] != expected && context.equal(line.sizes[d], 1)) continue;
    if (!context.equal(line.strides[d], expected)) return false;
    expected = expected * line.sizes[d];
  }
  return true;
}

// Fresh tensors with the sizes of `results` in the format that the convolution of these operands runs in.
Metas in_format_of_convolution(const ShapeContext& context, const TensorMeta& input, const TensorMeta& weight,
                               size_t groups, Metas results) {
  const bool is_line = input.rank() == 3;
  // A contiguous line keeps the strides of its dimensions of size 1.
  const bool is_packed = is_line && !is_contiguous_line(context, input);
  const TensorMeta packed = is_packed ? contiguous_meta(input.dtype, input.device, input.sizes) : input;
  const bool channels_last = is_line ? runs_channels_last(context, as_image(packed), as_image(weight), groups)
                                     : runs_channels_last(context, input, weight, groups);
  for (TensorMeta& meta : results)
    meta = is_line ? without_image_row(in_convolution_format(context, as_image(meta), channels_last))
                   : in_convolution_format(context, meta, channels_last);
  return results;
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
  if (!context.equal(input.sizes[1], transposed ? channels : channels * groups))
    not_covered(context, "an input of another number of channels");
  // Eager refuses some of these, and gives results without channels for others.
  if (!context.require(sym::less(0, input.sizes[1])) ||
      (transposed && !context.require(sym::less(0, weight.sizes[1]))))
    not_covered(context, "no channels");
  if (context.less(weight.sizes[0], groups) || !context.divisible(weight.sizes[0], groups))
    not_covered(context, "groups that do not divide the channels");
  const size_t spatial = input.sizes.size() - 2;
  std::vector<Expr> sizes = {input.sizes[0], transposed ? weight.sizes[1] * groups : weight.sizes[0]};
  for (size_t d = 0; d < spatial; ++d) {
    const Expr& size = input.sizes[d + 2];
    if (!context.require(sym::less(0, size))) {
      if (context.equal(input.sizes[0], 0)) not_covered(context, "a batch without images");
      refused_by_eager(context, "an image without elements");
    }
    if (!context.require(sym::less(0, weight.sizes[d + 2])))
      not_covered(context, "a kernel without elements");
    const Expr stride = item(context, 3, d, spatial);
    const Expr padding = item(context, 4, d, spatial) * 2;
    const Expr reach = item(context, 5, d, spatial) * (weight.sizes[d + 2] - 1);
    const Expr out = transposed ? (size - 1) * stride - padding + reach + item(context, 7, d, spatial) + 1
                                : sym::floordiv(size + padding - reach - 1, stride) + 1;
    if (!context.require(sym::less(0, out))) not_covered(context, "a kernel larger than the input");
    sizes.push_back(out);
  }
  const TensorMeta out = contiguous_meta(input.dtype, input.device, std::move(sizes));
  return in_format_of_convolution(context, input, weight, 8, {out});
}

Metas convolution_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  const TensorMeta& input = context.tensor(1);
  const TensorMeta& weight = context.tensor(2);
  Metas out = in_format_of_convolution(context, input, weight, 9, {input, weight});
  // The plain implementation without dilation leaves a weight alone that is in both formats at once.
  const bool channels_last = out[1].strides != contiguous_strides(weight.sizes);
  if (channels_last && weight.rank() == 4 && is_contiguous(weight) && is_channels_last(weight) &&
      (flag(context, 7) || are_one(context, 6)) && !runs_in_onednn(context, input, weight, 9))
    out[1].strides = weight.strides;
  // cuDNN's result follows the strides of the input, and those of one that is in both formats are not
  // changed.
  if (!is_on_host(weight.device) && channels_last && weight.rank() == 4 && is_channels_last(context, input) &&
      suggested_format(context, input, std::vector<bool>(input.sizes.size())) == MemoryFormat::Contiguous)
    out[1].strides = contiguous_strides(weight.sizes);
  out.push_back(contiguous_meta(grad.dtype, grad.device, {grad.sizes[1]}));
  return out;
}

Metas depthwise_convolution(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(0);
  const TensorMeta& weight = context.tensor(1);
  std::vector<Expr> sizes = {input.sizes[0], input.sizes[1]};
  for (size_t d = 0; d < 2; ++d) {
    const Expr reach = item(context, 4, d, 2) * (weight.sizes[d] - 1) + 1;
    const Expr room = input.sizes[d + 2] + 2 * item(context, 3, d, 2) - reach;
    sizes.push_back(sym::floordiv(room, item(context, 2, d, 2)) + 1);
  }
  TensorMeta meta = contiguous_meta(input.dtype, input.device, std::move(sizes));
  if (std::get<MemoryFormat>(context.arg(5)) == MemoryFormat::ChannelsLast)
    meta.strides = channels_last_strides(meta.sizes);
  return {meta};
}

}  // namespace oxy::ops::shapes
