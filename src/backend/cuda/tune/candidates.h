// Block shapes that are worth a try on the device, beside the one that the cost model chose.
#pragma once

#include <vector>

#include "backend/cuda/launch_shape.h"

namespace oxy::backend::cuda {

// Shapes of the same form as `chosen`: smaller and larger blocks, fewer and more warps, rows in registers or
// in steps, and steps whose loads are under way together. `chosen` is the first; each is there once. All are
// correct: results differ in the order in which reductions add.
std::vector<LaunchShape> candidate_shapes(const LoopNest& nest, const LaunchShape& chosen);

}  // namespace oxy::backend::cuda
