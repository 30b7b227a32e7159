// Lowering rules of operators that draw random numbers.
#pragma once

#include "graph/graph.h"
#include "loop/context.h"

namespace oxy::ops::lowerings {

// By the numbers that PyTorch's kernel for native_dropout draws on a GPU
// (aten/src/ATen/native/cuda/Dropout.cu).
void philox_mask(loop::LoweringContext& context, const graph::Node& node);
// (input, mask, p)
void scale_kept(loop::LoweringContext& context, const graph::Node& node);
// (grad, mask, scale)
void dropout_backward(loop::LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
