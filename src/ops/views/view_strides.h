// The strides of a view of other sizes, as eager computes them (at::detail::computeStride).
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops {

// The strides of a view of shape `sizes`, or nothing if the elements cannot be viewed so without a copy.
// Precondition: the numbers of elements are equal for all calls. A contiguous tensor is asked nothing; of
// others it is asked which runs of new sizes make up which runs of old ones, unless they say so themselves.
std::optional<std::vector<Expr>> view_strides(const ShapeContext& context, const TensorMeta& meta,
                                              const std::vector<Expr>& sizes);

// The view itself. Where one image has other strides than several have, so that it is no longer in the format
// of its channels, it is decided whether there is one.
std::optional<TensorMeta> viewed(const ShapeContext& context, const TensorMeta& meta,
                                 std::vector<Expr> sizes);

}  // namespace oxy::ops
