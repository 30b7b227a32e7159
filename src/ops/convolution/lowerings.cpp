#include "ops/convolution/lowerings.h"

#include <optional>
#include <tuple>

#include "ops/convolution/window.h"

namespace oxy::ops::lowerings {

using windows::Window;

void depthwise_convolution(LoweringContext& context, const Node& node) {
  const Tensor x = context.operand(node, 0), given = context.operand(node, 1);
  // Both are read many times. Channels of the weight lie side by side, as those of the image should.
  context.realise(x);
  const Tensor weight = given.is_realised() ? given : context.copy(given, contiguous_strides(given.sizes));
  Window w{.height = weight.sizes[0].constant(), .width = weight.sizes[1].constant()};
  std::tie(w.stride_h, w.stride_w) = pair_of(node, 2);
  std::tie(w.pad_h, w.pad_w) = pair_of(node, 3);
  std::tie(w.dilation_h, w.dilation_w) = pair_of(node, 4);
  const TensorMeta& out = context.output_meta(node);
  const auto sum_of_products = [x, weight, w](BodyBuilder& b, const Index& index) {
    std::optional<Value> sum;
    windows::for_each_in_window(b, x, w, index, 0, [&](int64_t row, int64_t column, Value element) {
      const Value product = element * LoweringContext::element(b, weight, {row, column, index[1], 0});
      sum = sum ? *sum + product : product;
    });
    return *sum;
  };
  context.set(node.outputs[0], context.generate({x, weight}, out.sizes, out.dtype, sum_of_products,
                                                static_cast<int>(3 * w.height * w.width)));
}

}  // namespace oxy::ops::lowerings
