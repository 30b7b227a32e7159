// Integers of a nest as arguments of its kernel: nests that differ in these alone print as one kernel.
#pragma once

#include <cstdint>

#include "backend/nests/loop_nest.h"

namespace oxy::backend {

// `nest`, which has been finished, with a symbol for each integer that costs no speed as a variable.
// `lanes` is the number that the kernel of `nest` has. Numbers stay where the compiler makes use of them:
// - extents of loops over lanes, and strides along them; of tiled nests only what is left over after whole
//   vectors, and all that concerns rows of which every tile has as many as there are lanes;
// - short loops, which are unrolled, and offsets that depend on them;
// - divisors, and values that the body computes with.
// The range of a symbol is its value, so that what asks for bounds decides as it does for the number; only
// that of the rows of a tiled nest is open.
LoopNest with_size_arguments(const LoopNest& nest, int64_t lanes);

}  // namespace oxy::backend
