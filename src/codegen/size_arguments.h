// Integers of a nest as arguments of its kernel: nests that differ in such integers alone print as one kernel.
#pragma once

#include <cstdint>

#include "codegen/loop_nest.h"

namespace oxy::codegen {

// `nest`, which has been finished, with each integer that costs no speed as a variable made a symbol of its own.
// `lanes` is the number that the kernel of `nest` has. Numbers stay where the compiler makes use of them: extents
// of loops over lanes and strides along them (those of tiled nests aside, of which only what is left over after
// whole vectors stays), short loops, which are unrolled, with all that depends on them, tiles of one column,
// divisors, and values that the body computes with. But for the rows of tiled nests, a symbol's range is its value
// alone, so that whatever asks for bounds decides as it does for the number.
LoopNest with_size_arguments(const LoopNest& nest, int64_t lanes);

}  // namespace oxy::codegen
