// Elements of a tensor that lie within a part of another, for lowerings.
#pragma once

#include <optional>

#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

// The element of x, broadcast, as the type in which elements of `dtype` are computed.
Value element_as(BodyBuilder& b, const Tensor& x, const Index& index, DType dtype);

// lower <= e < upper, leaving out what the ranges settle; nothing if all of it is true.
std::optional<Value> within(BodyBuilder& b, const Expr& e, const Expr& lower, const Expr& upper);

}  // namespace oxy::ops::lowerings
