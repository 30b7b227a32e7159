// The window of a pooling operator or of a convolution, and what of it lies in the image.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ops/core/lowering_arguments.h"

namespace oxy::ops::windows {

inline constexpr int64_t kMaxWindow = 25;  // elements, for which kernels are written without loops

struct Window {
  int64_t height = 1, width = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
};

// Of a node whose arguments from `first` on are (kernel, stride, padding), lists of one or two numbers.
// Unsupported where it has more than kMaxWindow elements.
Window window_of(const Node& node, size_t first = 1, std::optional<size_t> dilation = std::nullopt);

std::optional<Value> and_also(std::optional<Value> a, std::optional<Value> b);
// Whether 0 <= e < size; nothing where it always is.
std::optional<Value> inside(BodyBuilder& b, const Expr& e, const Expr& size);

// visit(row, column, element of the window of x) for all elements, those outside of x being `outside`.
// `index`: of the window, the last two dimensions.
void for_each_in_window(BodyBuilder& b, const Tensor& x, const Window& w, const Index& index, double outside,
                        const std::function<void(int64_t row, int64_t column, Value element)>& visit);

// fn(accumulated, element) over the same elements.
Value over_window(BodyBuilder& b, const Tensor& x, const Window& w, const Index& index, double outside,
                  Value (*fn)(Value, Value));

}  // namespace oxy::ops::windows
