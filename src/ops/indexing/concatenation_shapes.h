// The shape rule of a concatenation, for operators that make one.
#pragma once

#include <span>

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

TensorMeta concatenated(const ShapeContext& context, std::span<const TensorMeta* const> parts, int64_t dim);

}  // namespace oxy::ops::shapes
