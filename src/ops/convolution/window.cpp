#include "ops/convolution/window.h"

#include <tuple>

namespace oxy::ops::windows {

Window window_of(const Node& node, size_t first, std::optional<size_t> dilation) {
  Window w;
  std::tie(w.height, w.width) = pair_of(node, first);
  std::tie(w.stride_h, w.stride_w) =
      expressions(node, first + 1).empty() ? std::pair(w.height, w.width) : pair_of(node, first + 1);
  std::tie(w.pad_h, w.pad_w) = pair_of(node, first + 2);
  if (dilation) std::tie(w.dilation_h, w.dilation_w) = pair_of(node, *dilation);
  if (w.height * w.width > kMaxWindow) not_lowered(node, "a large window");
  return w;
}

std::optional<Value> and_also(std::optional<Value> a, std::optional<Value> b) {
  if (!a || !b) return a ? a : b;
  return *a & *b;
}

std::optional<Value> inside(BodyBuilder& b, const Expr& e, const Expr& size) {
  std::optional<Value> mask;
  if (!sym::known_less_equal(0, e)) mask = b.index(e) >= b.index(0);
  if (!sym::known_less(e, size)) mask = and_also(mask, b.index(e) < b.index(size));
  return mask;
}

void for_each_in_window(BodyBuilder& b, const Tensor& x, const Window& w, const Index& index, double outside,
                        const std::function<void(int64_t row, int64_t column, Value element)>& visit) {
  size_t h = index.size() - 2;
  Value otherwise = b.constant(outside, compute_type(x.dtype));
  for (int64_t i = 0; i < w.height; ++i)
    for (int64_t j = 0; j < w.width; ++j) {
      Index source = index;
      source[h] = index[h] * w.stride_h + (i * w.dilation_h - w.pad_h);
      source[h + 1] = index[h + 1] * w.stride_w + (j * w.dilation_w - w.pad_w);
      auto mask = and_also(inside(b, source[h], x.sizes[h]), inside(b, source[h + 1], x.sizes[h + 1]));
      auto load = [&] { return LoweringContext::element(b, x, source); };
      visit(i, j, mask ? b.masked(*mask, load, otherwise) : load());
    }
}

Value over_window(BodyBuilder& b, const Tensor& x, const Window& w, const Index& index, double outside,
                  Value (*fn)(Value, Value)) {
  std::optional<Value> result;
  for_each_in_window(b, x, w, index, outside, [&](int64_t /*row*/, int64_t /*column*/, Value element) {
    result = result ? fn(*result, element) : element;
  });
  return *result;
}

}  // namespace oxy::ops::windows
