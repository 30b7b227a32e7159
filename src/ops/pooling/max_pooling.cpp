// Max pooling in two dimensions with one byte for the place of each maximum in its window, in place of its
// index in the image. The backward pass reads these bytes, and finds for each element of the image the
// windows that it may be the maximum of: nothing is scattered.
#include <cmath>

#include "ops/convolution/window.h"
#include "ops/pooling/decompositions.h"
#include "ops/pooling/lowerings.h"

namespace oxy::ops {

using windows::and_also;
using windows::inside;
using windows::over_window;
using windows::Window;
using windows::window_of;

namespace decompositions {

using graph::Argument;
using graph::ValueRef;

std::vector<ValueRef> max_pool2d(Composer& c) {
  // (self, kernel_size, stride, padding, dilation, ceil_mode)
  if (!is_floating(c.meta(c.arg(0)).dtype)) throw Unsupported("integers");
  window_of(c.node(), 1, 4);
  TensorMeta values = c.result(c.has_result(0) ? 0 : 1), places = values;
  values.dtype = c.meta(c.arg(0)).dtype;
  places.dtype = DType::Int8;
  const std::vector<ValueRef> results =
      c.call_for("oxyfuel::max_pool2d_places", c.node().args, {values, places});
  if (!c.has_result(1)) return {results[0], {graph::kNoValue}};
  const Expr width = c.meta(c.arg(0)).sizes.back();
  return c.without_left_out(
      {results[0],
       c.call("oxyfuel::max_pool2d_indices", {results[1], width, c.arg(1), c.arg(2), c.arg(3), c.arg(4)})});
}

std::vector<ValueRef> max_pool2d_backward(Composer& c) {
  // (grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
  const Window w = window_of(c.node(), 2, 5);
  if (w.dilation_h != 1 || w.dilation_w != 1) throw Unsupported("a dilated window");
  const graph::Node* const pooling = c.producer(c.arg(7));
  if (pooling == nullptr || pooling->op->name != "oxyfuel::max_pool2d_indices")
    throw Unsupported("indices that the region does not compute");
  if (c.meta(pooling->args[0]).sizes != c.meta(c.arg(0)).sizes)
    throw Unsupported("a gradient of another size than the indices");
  const TensorMeta result = c.result();
  const MemoryFormat format = is_contiguous(result) ? MemoryFormat::Contiguous : MemoryFormat::ChannelsLast;
  return {c.call("oxyfuel::max_pool2d_gradient",
                 {c.arg(0), pooling->args[0], result.sizes, c.arg(2), c.arg(3), c.arg(4), format})};
}

}  // namespace decompositions

namespace lowerings {

namespace {

// The row or column of a window's first element in the image.
Expr first_of_window(const Expr& window, int64_t stride, int64_t pad) {
  return window * stride - pad;
}

// The first row or column of a window that lies in the image.
Expr first_inside(const Expr& window, int64_t stride, int64_t pad, int64_t dilation) {
  if (pad == 0) return 0;
  return sym::floordiv(sym::max(pad - window * stride, 0) + (dilation - 1), dilation);
}

struct Maximum {
  Value value, place;
};

// As eager finds it: the first of equal ones, and the last NaN.
Maximum maximum_of(BodyBuilder& b, const Tensor& x, const Window& w, const Index& index) {
  const size_t h = index.size() - 2;
  Value best = b.constant(-INFINITY, compute_type(x.dtype));
  Value place = b.index(first_inside(index[h], w.stride_h, w.pad_h, w.dilation_h) * w.width +
                            first_inside(index[h + 1], w.stride_w, w.pad_w, w.dilation_w),
                        DType::Int32);
  const Value outside = best;
  for (int64_t i = 0; i < w.height; ++i)
    for (int64_t j = 0; j < w.width; ++j) {
      Index source = index;
      source[h] = first_of_window(index[h], w.stride_h, w.pad_h) + i * w.dilation_h;
      source[h + 1] = first_of_window(index[h + 1], w.stride_w, w.pad_w) + j * w.dilation_w;
      const auto mask = and_also(inside(b, source[h], x.sizes[h]), inside(b, source[h + 1], x.sizes[h + 1]));
      const auto load = [&] { return LoweringContext::element(b, x, source); };
      const Value element = mask ? b.masked(*mask, load, outside) : load();
      const Value is_better = (element > best) | (element != element);
      best = where(is_better, element, best);
      place = where(is_better, b.constant(static_cast<double>(i * w.width + j), DType::Int32), place);
    }
  return {best, place};
}

}  // namespace

void max_pool2d_places(LoweringContext& context, const Node& node) {
  // (self, kernel_size, stride, padding, dilation, ceil_mode) -> values, places
  Tensor x = context.operand(node, 0);
  const Window w = window_of(node, 1, 4);
  context.realise_unless_cheap(x);
  const TensorMeta& out = context.output_meta(node);
  const int work = static_cast<int>(4 * w.height * w.width);
  if (context.uses(node.outputs[1]) == 0) {
    const auto largest = [x, w](BodyBuilder& b, const Index& index) {
      return over_window(b, x, w, index, -INFINITY, loop::maximum);
    };
    context.set(node.outputs[0], context.generate({x}, out.sizes, out.dtype, largest, work));
    return;
  }
  context.set(
      node.outputs[0],
      context.generate(
          {x}, out.sizes, out.dtype,
          [x, w](BodyBuilder& b, const Index& index) { return maximum_of(b, x, w, index).value; }, work));
  context.set(node.outputs[1], context.generate(
                                   {x}, out.sizes, DType::Int8,
                                   [x, w](BodyBuilder& b, const Index& index) {
                                     return b.cast(maximum_of(b, x, w, index).place, DType::Int8);
                                   },
                                   work));
}

void max_pool2d_indices(LoweringContext& context, const Node& node) {
  // (places, width, kernel_size, stride, padding, dilation)
  const Tensor places = context.operand(node, 0);
  const Expr columns = expression(node, 1);
  const Window w = window_of(node, 2, 5);
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0],
              context.generate({places}, out.sizes, out.dtype, [=](BodyBuilder& b, const Index& index) {
                const size_t h = index.size() - 2;
                const Value place = b.cast(LoweringContext::element(b, places, index), DType::Int64);
                const auto number = [&](int64_t n) {
                  return b.constant(static_cast<double>(n), DType::Int64);
                };
                const Value row = b.binary(loop::Op::TruncDiv, place, number(w.width));
                const Value column = place - row * number(w.width);
                const Expr first = first_of_window(index[h], w.stride_h, w.pad_h) * columns +
                                   first_of_window(index[h + 1], w.stride_w, w.pad_w);
                return b.index(first) + row * b.index(columns * w.dilation_h) + column * number(w.dilation_w);
              }));
}

void max_pool2d_gradient(LoweringContext& context, const Node& node) {
  // (grad_output, places, sizes, kernel_size, stride, padding, memory_format)
  Tensor gradient = context.operand(node, 0), places = context.operand(node, 1);
  const Window w = window_of(node, 3);
  context.realise_unless_cheap(gradient);
  context.realise_unless_cheap(places);
  const TensorMeta& out = context.output_meta(node);
  // How many windows may have an element, along each dimension.
  const int64_t rows = (w.height - 1) / w.stride_h + 1, columns = (w.width - 1) / w.stride_w + 1;
  context.set(node.outputs[0],
              context.generate(
                  {gradient, places}, out.sizes, out.dtype,
                  [=](BodyBuilder& b, const Index& index) {
                    const size_t h = index.size() - 2;
                    const Value zero = b.constant(0.0, compute_type(out.dtype));
                    const Expr y = index[h] + w.pad_h, x = index[h + 1] + w.pad_w;
                    std::optional<Value> sum;
                    for (int64_t i = rows - 1; i >= 0; --i)
                      for (int64_t j = columns - 1; j >= 0; --j) {
                        Index window = index;
                        window[h] = sym::floordiv(y, w.stride_h) - i;
                        window[h + 1] = sym::floordiv(x, w.stride_w) - j;
                        // Where the element stands in that window.
                        const Expr row = sym::mod(y, w.stride_h) + i * w.stride_h;
                        const Expr column = sym::mod(x, w.stride_w) + j * w.stride_w;
                        auto mask = and_also(inside(b, window[h], gradient.sizes[h]),
                                             inside(b, window[h + 1], gradient.sizes[h + 1]));
                        mask = and_also(mask, inside(b, row, w.height));
                        mask = and_also(mask, inside(b, column, w.width));
                        const auto part = [&] {
                          const Value place =
                              b.cast(LoweringContext::element(b, places, window), DType::Int32);
                          const Value is_maximum = place == b.index(row * w.width + column, DType::Int32);
                          return where(is_maximum, LoweringContext::element(b, gradient, window), zero);
                        };
                        const Value added = mask ? b.masked(*mask, part, zero) : part();
                        sum = sum ? *sum + added : added;
                      }
                    return *sum;
                  },
                  static_cast<int>(4 * rows * columns)));
}

}  // namespace lowerings

}  // namespace oxy::ops
