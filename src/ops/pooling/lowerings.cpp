#include "ops/pooling/lowerings.h"

#include <optional>

#include "ops/convolution/window.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;
using loop::ReductionKind;
using windows::over_window;
using windows::Window;
using windows::window_of;

void avg_pool2d(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  if (!is_floating(x.dtype)) not_lowered(node, "integers");
  Window w = window_of(node);
  bool ceil_mode = flag(node, 4);
  bool count_padding = flag(node, 5);
  bool padded = w.pad_h != 0 || w.pad_w != 0;
  // With ceil_mode the last window may reach beyond the padding, which never counts: without padding the
  // elements that there are count in either mode.
  if (ceil_mode && padded) not_lowered(node, "windows that reach beyond the padding");
  double divisor =
      is_none(node, 6) ? static_cast<double>(w.height * w.width) : static_cast<double>(integer(node, 6));
  bool counts = (ceil_mode || (padded && !count_padding)) && is_none(node, 6);
  context.realise_unless_cheap(x);
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0],
              context.generate(
                  {x}, out.sizes, out.dtype,
                  [x, w, divisor, counts](BodyBuilder& b, const Index& index) {
                    Value sum = over_window(b, x, w, index, 0, [](Value a, Value e) { return a + e; });
                    if (!counts) return sum / divisor;
                    size_t h = index.size() - 2;
                    auto length = [&](const Expr& i, int64_t stride, int64_t pad, int64_t size,
                                      const Expr& limit) {
                      Expr start = i * stride - pad;
                      return sym::min(start + size, limit) - sym::max(start, 0);
                    };
                    Expr count = length(index[h], w.stride_h, w.pad_h, w.height, x.sizes[h]) *
                                 length(index[h + 1], w.stride_w, w.pad_w, w.width, x.sizes[h + 1]);
                    return sum / b.index(count, sum.dtype);
                  },
                  static_cast<int>(2 * w.height * w.width)));
}

void adaptive_avg_pool2d(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  if (!is_floating(x.dtype)) not_lowered(node, "integers");
  const TensorMeta& out = context.output_meta(node);
  size_t h = x.sizes.size() - 2;
  if (!sym::known_divisible(x.sizes[h], out.sizes[h]) ||
      !sym::known_divisible(x.sizes[h + 1], out.sizes[h + 1]))
    not_lowered(node, "windows of different sizes");
  Expr height = sym::floordiv(x.sizes[h], out.sizes[h]);
  Expr width = sym::floordiv(x.sizes[h + 1], out.sizes[h + 1]);
  DType type = compute_dtype(x.dtype);
  Tensor sum = context.reduce(ReductionKind::Sum, {x}, out.sizes, {height, width}, type,
                              [&](BodyBuilder& b, const Index& kept, const Index& inner) {
                                Index source = kept;
                                source[h] = source[h] * height + inner[0];
                                source[h + 1] = source[h + 1] * width + inner[1];
                                return LoweringContext::element(b, x, source);
                              })[0];
  context.set(node.outputs[0],
              context.pointwise({sum}, out.sizes, out.dtype,
                                [count = height * width](BodyBuilder& b, std::span<const Value> v) {
                                  return v[0] / b.index(count, v[0].dtype);
                                }));
}

void upsample_nearest2d(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  const TensorMeta& out = context.output_meta(node);
  // Eager multiplies by a float scale; where the sizes divide that is an exact integer division.
  for (size_t d = 2; d < 4; ++d) {
    if (!sym::known_divisible(out.sizes[d], x.sizes[d])) not_lowered(node, "a scale that is not an integer");
    Expr factor = sym::floordiv(out.sizes[d], x.sizes[d]);
    if (!is_none(node, d) &&
        (!factor.is_constant() || real(node, d) != static_cast<double>(factor.constant())))
      not_lowered(node, "a scale other than that of the sizes");
  }
  Tensor view = context.view(x, out.sizes, [&](const Index& index) {
    Index source = index;
    for (size_t d = 2; d < 4; ++d)
      source[d] = sym::floordiv(index[d], sym::floordiv(out.sizes[d], x.sizes[d]));
    return source;
  });
  context.set(node.outputs[0], context.generate(
                                   {view}, out.sizes, out.dtype,
                                   [view](BodyBuilder& b, const Index& index) {
                                     return LoweringContext::element(b, view, index);
                                   },
                                   1));
}

}  // namespace oxy::ops::lowerings
