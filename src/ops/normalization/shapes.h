// Shape rules of normalisations, softmax and their gradients.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas layer_norm(const ShapeContext& context);  // (input, normalized_shape, weight, bias, eps)
Metas layer_norm_backward(
    const ShapeContext& context);                      // (grad, input, shape, mean, rstd, weight, bias, mask)
Metas rms_norm(const ShapeContext& context);           // (input, normalized_shape, weight, eps)
Metas rms_norm_backward(const ShapeContext& context);  // (grad, input, shape, rstd, weight, mask)
// Arguments input, weight, bias, running_mean, running_var in front; result, saved mean, saved inverse
// deviation.
Metas batch_norm(const ShapeContext& context);  // native_batch_norm and the legit form with statistics
Metas batch_norm_without_statistics(const ShapeContext& context);  // _native_batch_norm_legit.no_stats
Metas batch_norm_inference(const ShapeContext& context);           // _native_batch_norm_legit_no_training
Metas batch_norm_functional(const ShapeContext& context);          // the same and the new running statistics
Metas batch_norm_with_update(const ShapeContext& context);
Metas batch_norm_with_update_functional(const ShapeContext& context);
Metas batch_norm_backward(const ShapeContext& context);
Metas group_norm(const ShapeContext& context);  // (input, weight, bias, N, C, HxW, group, eps)
Metas group_norm_backward(const ShapeContext& context);
Metas softmax(const ShapeContext& context);  // (self, dim, half_to_float)
Metas softmax_rows(const ShapeContext& context);
Metas safe_softmax(const ShapeContext& context);      // (self, dim, dtype)
Metas softmax_backward(const ShapeContext& context);  // (grad_output, output, dim, input_dtype)
Metas weight_norm(const ShapeContext& context);       // _weight_norm_interface(v, g, dim)

}  // namespace oxy::ops::shapes
