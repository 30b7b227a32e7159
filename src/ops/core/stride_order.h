// In which order eager lays out the dimensions of an element-wise result.
#pragma once

#include <span>
#include <vector>

#include "ops/core/shape_arguments.h"

namespace oxy::ops {

// The dimensions from the innermost outwards, as the operands' strides suggest: an operand orders two
// dimensions unless it is broadcast along one of them; the first operand with an opinion wins; without one
// the later dimension is the inner one. Strides are those of operands of shape `sizes` (0 where broadcast).
// `own`: the same of operands that are not broadcast, 0 where one has no such dimension; empty: none is
// broadcast.
std::vector<size_t> stride_order(const ShapeContext& context, const std::vector<Expr>& sizes,
                                 std::span<const std::vector<Expr>> strides,
                                 std::span<const std::vector<Expr>> own = {});

}  // namespace oxy::ops
