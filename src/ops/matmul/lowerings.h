// Lowerings of the matrix products that generated kernels compute.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

// (row [1, inner], matrix [rows, inner]) -> [1, rows]
void vector_product(loop::LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
