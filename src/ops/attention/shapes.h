// Shape rules of fused attention.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// _scaled_dot_product_flash_attention_for_cpu(query, key, value, ...) -> output, logsumexp
Metas flash_attention(const ShapeContext& context);
// (grad_out, query, key, value, out, logsumexp, ...) -> gradients of query, key, value
Metas flash_attention_backward(const ShapeContext& context);
Metas encoder_layer(const ShapeContext& context);

}  // namespace oxy::ops::shapes
