// Instructions of element programs as Triton text.
#pragma once

#include <span>
#include <string>

#include "backend/cuda/print/helpers.h"
#include "backend/cuda/print/value.h"
#include "backend/nests/loop_nest.h"

namespace oxy::backend::cuda {

struct OpContext {
  Needs& needs;
  bool is_precise = true;  // float32 divides as IEEE 754 asks; else within 2 units in the last place
};

// The text of `inst` (no Load, Constant, Index or BindIndex) over its operands. Unsupported if eager has no
// such operation on the type.
std::string op_text(const NestInst& inst, std::span<const Value> operands, OpContext& context);

// `x` as a value of type `to`, rounded to it; half types are held in float32.
std::string cast_text(const Value& x, DType to);

// The operand as a tensor, where a literal would be a number of Python's.
std::string tensor_text(const Value& x);

}  // namespace oxy::backend::cuda
