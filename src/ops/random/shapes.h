// Shape rules of operators that draw random numbers.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas random_integers(const ShapeContext& context);  // randint: (high, size) or (low, high, size)
Metas random_permutation(const ShapeContext& context);
Metas bernoulli(const ShapeContext& context);
Metas normal(const ShapeContext& context);            // deviations as a tensor
Metas dropout(const ShapeContext& context);           // native_dropout(input, p, train) -> output, mask
Metas dropout_backward(const ShapeContext& context);  // (grad, mask, scale)
Metas philox_states(const ShapeContext& context);     // (counts, threads, device) -> states
Metas philox_mask(const ShapeContext& context);       // (states, ..., sizes, strides)
Metas scale_kept(const ShapeContext& context);        // (input, mask, p)
Metas multinomial(const ShapeContext& context);

}  // namespace oxy::ops::shapes
