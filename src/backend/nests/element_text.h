// What the texts of kernels have in common, in C++ and in Triton's language.
#pragma once

#include <cstdint>
#include <string_view>

#include "loop/program.h"

namespace oxy::backend {

// The sign between the two operands: "+"; empty for operators that are written otherwise. Division is: the
// languages differ in it.
std::string_view infix(loop::Op op);

// As an integer: truncated, and the nearest that 64 bits hold.
int64_t integer_of(const loop::Scalar& value);

}  // namespace oxy::backend
