#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// Operators that write argument 0 and return it: the tensor itself, if the rule of the functional counterpart
// says that the result has its sizes and a type that can be stored in it.
Metas in_place(const ShapeContext& context);

}  // namespace oxy::ops::shapes
