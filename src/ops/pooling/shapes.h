// Shape rules of pooling and resampling.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas max_pool(
    const ShapeContext& context);  // (self, kernel, stride, padding, dilation, ceil_mode) -> values, indices
Metas max_pool_places(const ShapeContext& context);        // the same -> values, places
Metas max_pool_indices(const ShapeContext& context);       // (places, ...)
Metas max_pool_gradient(const ShapeContext& context);      // (grad_output, places, sizes, ..., memory_format)
Metas average_pool(const ShapeContext& context);           // (self, kernel, stride, padding, ceil_mode, ...)
Metas adaptive_average_pool(const ShapeContext& context);  // (self, output_size)
Metas adaptive_max_pool(const ShapeContext& context);
Metas upsample(const ShapeContext& context);                // (self, output_size, ...)
Metas pool_backward(const ShapeContext& context);           // (grad_output, self, ...): self's shape
Metas adaptive_pool_backward(const ShapeContext& context);  // (grad_output, self)
Metas upsample_backward(const ShapeContext& context);       // (grad_output, output_size, input_size, ...)
Metas contiguous_upsample_backward(const ShapeContext& context);
Metas grid_sample(const ShapeContext& context);  // (input, grid, ...)
Metas grid_sample_backward(const ShapeContext& context);
Metas max_unpool(const ShapeContext& context);
Metas volume_pool_backward(const ShapeContext& context);
Metas affine_grid(const ShapeContext& context);

}  // namespace oxy::ops::shapes
