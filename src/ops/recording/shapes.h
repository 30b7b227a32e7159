// Shape rules of operators that PyTorch decomposes, and that are nodes where it would unroll them.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// Of a check.
Metas nothing(const ShapeContext& context);
// lstm, gru, rnn_tanh, rnn_relu of a padded sequence: outputs and last states.
Metas recurrent(const ShapeContext& context);
// oxyfuel::recurrent_backward: the gradients of those tensors for which they are wanted.
Metas recurrent_backward(const ShapeContext& context);

}  // namespace oxy::ops::shapes
