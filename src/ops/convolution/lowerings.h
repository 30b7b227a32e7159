// Lowerings of convolutions with small windows.
#pragma once

#include "loop/context.h"

namespace oxy::ops::lowerings {

// (input, weight, stride, padding, dilation, memory_format)
void depthwise_convolution(loop::LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
