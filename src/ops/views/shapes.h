// Shape rules of views: strides and storage offset are exactly eager's.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas alias(const ShapeContext& context);
Metas as_strided(const ShapeContext& context);
Metas diagonal(const ShapeContext& context);
Metas expand(const ShapeContext& context);
Metas permute(const ShapeContext& context);
Metas reshape_alias(const ShapeContext& context);
Metas select(const ShapeContext& context);
Metas slice(const ShapeContext& context);
Metas slice_backward(const ShapeContext& context);
Metas slice_scatter(const ShapeContext& context);
Metas split(const ShapeContext& context);
Metas split_with_sizes(const ShapeContext& context);
Metas squeeze(const ShapeContext& context);
Metas squeeze_dims(const ShapeContext& context);
Metas t(const ShapeContext& context);
Metas transpose(const ShapeContext& context);
Metas unbind(const ShapeContext& context);
Metas unfold(const ShapeContext& context);
Metas unsqueeze(const ShapeContext& context);
Metas view(const ShapeContext& context);
Metas view_as_complex(const ShapeContext& context);
Metas view_as_real(const ShapeContext& context);
Metas view_dtype(const ShapeContext& context);

}  // namespace oxy::ops::shapes
