// Shape rules of convolutions.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Metas convolution(const ShapeContext& context);
// (grad_output, input, weight, bias_sizes, stride, ..., groups, output_mask)
Metas convolution_backward(const ShapeContext& context);
// (input, weight, stride, padding, dilation, memory_format)
Metas depthwise_convolution(const ShapeContext& context);

}  // namespace oxy::ops::shapes
