#include "ops/pooling/shapes.h"

#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"

namespace oxy::ops::shapes {
namespace {

// Spatial dimensions of the operator, as its name says.
size_t spatial_dims(const ShapeContext& context) {
  const std::string& name = context.schema().name;
  for (size_t n : {1, 2, 3}) {
    const char text[] = {static_cast<char>('0' + n), 'd', 0};
    if (name.find(text) != std::string::npos) return n;
  }
  not_covered(context, "an operator of unknown rank");
}

void need_rank(const ShapeContext& context, const TensorMeta& self, size_t spatial) {
  if (self.sizes.size() != spatial + 1 && self.sizes.size() != spatial + 2)
    not_covered(context, "an input of another rank");
  const bool is_batch = self.sizes.size() == spatial + 2;  // which alone may be empty
  for (size_t d = is_batch ? 1 : 0; d < self.sizes.size(); ++d)
    if (context.equal(self.sizes[d], 0)) not_covered(context, "an empty dimension");
}

Expr item(const ShapeContext& context, const std::vector<Expr>& items, size_t d, size_t spatial) {
  if (items.size() == 1) return items[0];
  if (items.size() != spatial) not_covered(context, "a list of another length");
  return items[d];
}

Expr window_count(const ShapeContext& context, const Expr& size, const Expr& kernel, const Expr& stride,
                  const Expr& padding, const Expr& dilation, bool ceil_mode) {
  const Expr reach = dilation * (kernel - 1) + 1;
  if (!context.less(0, stride) || !context.less_equal(padding * 2, reach) ||
      !context.less_equal(0, padding) || !context.less(0, kernel) || !context.less(0, dilation))
    not_covered(context, "a stride or padding that is not valid");
  Expr count = sym::floordiv(size + padding * 2 - reach + (ceil_mode ? stride - 1 : Expr(0)), stride) + 1;
  if (ceil_mode) {  // the last window must start inside the input or its left padding
    const Expr last = (count - 1) * stride;
    if (context.less_equal(size + padding, last)) {
      count = count - 1;
    } else if (!context.less(last, size + padding)) {
      not_covered(context, "a symbolic size in ceil mode");
    }
  }
  if (!context.require(sym::less(0, count))) not_covered(context, "a window larger than the input");
  return count;
}

std::vector<Expr> pooled_sizes(const ShapeContext& context, size_t spatial, const std::vector<Expr>& dilation,
                               bool ceil_mode) {
  const TensorMeta& self = context.tensor(0);
  need_rank(context, self, spatial);
  const std::vector<Expr>& kernel = list(context, 1);
  const std::vector<Expr>& stride = list(context, 2).empty() ? kernel : list(context, 2);
  std::vector<Expr> sizes = self.sizes;
  const size_t first = sizes.size() - spatial;
  for (size_t d = 0; d < spatial; ++d)
    sizes[first + d] = window_count(
        context, sizes[first + d], item(context, kernel, d, spatial), item(context, stride, d, spatial),
        item(context, list(context, 3), d, spatial), item(context, dilation, d, spatial), ceil_mode);
  return sizes;
}

TensorMeta with_index_type(TensorMeta meta) {
  meta.dtype = DType::Int64;
  return meta;
}

}  // namespace

Metas max_pool(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const size_t spatial = spatial_dims(context);
  std::vector<Expr> sizes = pooled_sizes(context, spatial, list(context, 4), flag(context, 5));
  // The kernel for GPUs has the format of images for batches of volumes alone.
  const bool is_plain = !is_on_host(self.device) && spatial == 3 && self.rank() == 4;
  const TensorMeta out = is_plain ? contiguous_meta(self.dtype, self.device, std::move(sizes))
                                  : in_suggested_format(context, self, std::move(sizes));
  return {out, with_index_type(out)};
}

Metas max_pool_places(const ShapeContext& context) {
  Metas metas = max_pool(context);
  metas[1].dtype = DType::Int8;
  return metas;
}

Metas max_pool_indices(const ShapeContext& context) {
  return {with_index_type(context.tensor(0))};
}

Metas max_pool_gradient(const ShapeContext& context) {
  const TensorMeta& gradient = context.tensor(0);
  TensorMeta meta = contiguous_meta(gradient.dtype, gradient.device, list(context, 2));
  const size_t format = context.size() - 1;
  if (std::get<MemoryFormat>(context.arg(format)) == MemoryFormat::ChannelsLast)
    meta.strides = channels_last_strides(meta.sizes);
  return {meta};
}

Metas average_pool(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const size_t spatial = spatial_dims(context);
  std::vector<Expr> sizes = pooled_sizes(context, spatial, {Expr(1)}, flag(context, 4));
  const size_t divisor = 6;  // divisor_override, of two and three dimensions
  if (context.size() > divisor && !context.is_none(divisor) && integer(context, divisor) == 0)
    not_covered(context, "a divisor of zero");
  if (spatial == 3) return {contiguous_meta(self.dtype, self.device, std::move(sizes))};
  return {in_suggested_format(context, self, std::move(sizes))};
}

Metas adaptive_average_pool(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const size_t spatial = spatial_dims(context);
  need_rank(context, self, spatial);
  std::vector<Expr> sizes = self.sizes;
  for (size_t d = 0; d < spatial; ++d)
    sizes[sizes.size() - spatial + d] = item(context, list(context, 1), d, spatial);
  return {spatial == 3 ? contiguous_meta(self.dtype, self.device, std::move(sizes))
                       : in_suggested_format(context, self, std::move(sizes))};
}

Metas adaptive_max_pool(const ShapeContext& context) {
  const TensorMeta out = adaptive_average_pool(context).front();
  return {out, with_index_type(out)};
}

Metas upsample(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const size_t spatial = spatial_dims(context);
  if (self.sizes.size() != spatial + 2) not_covered(context, "an input of another rank");
  std::vector<Expr> sizes = self.sizes;
  for (size_t d = 0; d < spatial; ++d) sizes[d + 2] = item(context, list(context, 1), d, spatial);
  for (size_t d = 1; d < sizes.size(); ++d)
    if (!context.require(sym::less(0, sizes[d])) || !context.require(sym::less(0, self.sizes[d])))
      refused_by_eager(context, "an image without elements");
  return {in_suggested_format(context, self, std::move(sizes))};
}

Metas pool_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  return {in_suggested_format(context, self)};
}

Metas adaptive_pool_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  for (size_t d = 1; d < grad.sizes.size(); ++d)
    if (context.equal(grad.sizes[d], 0)) refused_by_eager(context, "an image without elements");
  const TensorMeta out = pool_backward(context).front();
  // The kernel for GPUs begins with a contiguous tensor, and keeps its strides if it is in both formats.
  const TensorMeta plain = contiguous_meta(out.dtype, out.device, out.sizes);
  const bool is_plain =
      !is_on_host(out.device) && out.strides != plain.strides && is_channels_last(context, plain);
  return {is_plain ? plain : out};
}

Metas upsample_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  return {in_suggested_format(context, grad, list(context, 2))};
}

Metas contiguous_upsample_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  return {contiguous_meta(grad.dtype, grad.device, list(context, 2))};
}

Metas grid_sample(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(0);
  const TensorMeta& grid = context.tensor(1);
  if (input.rank() != grid.rank() || input.rank() < 4) not_covered(context, "an input of another rank");
  const auto dimensions = static_cast<int64_t>(input.rank()) - 2;
  if (!context.equal(input.sizes[0], grid.sizes[0]) || !context.equal(grid.sizes.back(), dimensions))
    refused_by_eager(context, "a grid of another shape");
  for (size_t d = 2; d < input.sizes.size(); ++d)
    if (context.equal(input.sizes[d], 0)) refused_by_eager(context, "an image without pixels");
  std::vector<Expr> sizes = {input.sizes[0], input.sizes[1]};
  for (size_t d = 1; d + 1 < grid.sizes.size(); ++d) sizes.push_back(grid.sizes[d]);
  return {contiguous_meta(input.dtype, input.device, std::move(sizes))};
}

Metas grid_sample_backward(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(1);
  const TensorMeta& grid = context.tensor(2);
  return {contiguous_meta(input.dtype, input.device, input.sizes),
          contiguous_meta(grid.dtype, grid.device, grid.sizes)};
}

Metas max_unpool(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<Expr>& size = list(context, 2);
  if (self.sizes.size() < size.size() + 1 || self.sizes.size() > size.size() + 2)
    not_covered(context, "an input of another rank");
  if (!are_equal(context, context.tensor(1).sizes, self.sizes))
    not_covered(context, "indices of another shape");
  for (size_t d = self.sizes.size() - size.size(); d < self.sizes.size(); ++d)
    if (context.equal(self.sizes[d], 0)) not_covered(context, "an empty dimension");
  std::vector<Expr> sizes(self.sizes.begin(), self.sizes.end() - static_cast<std::ptrdiff_t>(size.size()));
  sizes.insert(sizes.end(), size.begin(), size.end());
  if (size.size() == 3) return {contiguous_meta(self.dtype, self.device, std::move(sizes))};
  return {in_format_of_host(context, self, std::move(sizes))};
}

Metas volume_pool_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas affine_grid(const ShapeContext& context) {
  const TensorMeta& theta = context.tensor(0);
  const std::vector<Expr>& size = list(context, 1);
  if (size.size() != 4 && size.size() != 5) not_covered(context, "a size of another rank");
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if (!is_floating(theta.dtype) || !are_equal(context, theta.sizes, {size[0], rank, rank + 1}))
    not_covered(context, "a map of another size");
  std::vector<Expr> sizes{size[0]};
  sizes.insert(sizes.end(), size.begin() + 2, size.end());
  sizes.emplace_back(static_cast<int64_t>(size.size()) - 2);
  return {contiguous_meta(theta.dtype, theta.device, std::move(sizes))};
}

}  // namespace oxy::ops::shapes
