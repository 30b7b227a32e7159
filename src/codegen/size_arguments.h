// Integers of a nest as arguments of its kernel: nests that differ in such integers alone print as one kernel.
#pragma once

#include <cstdint>

#include "codegen/loop_nest.h"

namespace oxy::codegen {

// `nest`, which has been finished, with each integer that costs no speed as a variable made a symbol of its own.
// `lanes` is the number that the kernel of `nest` has. What decides how code is written stays a number: strides
// of lanes, extents of loops that are unrolled, what an extent leaves over after whole vectors, divisors. A
// symbol's range is its value alone, so that whatever asks for bounds decides as it does for the number.
LoopNest with_size_arguments(const LoopNest& nest, int64_t lanes);

}  // namespace oxy::codegen
