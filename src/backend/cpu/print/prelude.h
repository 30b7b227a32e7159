// The helper functions that generated kernels use: each kernel's file carries those that it calls and no
// others.
//
// Vectors have W lanes of any type: f32v, f64v, i8v .. i64v, u8v .. u64v. A truth value is an i32v of 0 and
// -1. float16 and bfloat16 are f32v in registers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "aten/dtype.h"
#include "backend/cpu/target.h"

namespace oxy::backend::cpu {

// "f32", "bf16", "bool": the short name of an element type in generated code. Unsupported for complex types.
std::string_view short_name(DType dtype);
// The C++ type of an element in memory ("uint16_t" for bfloat16) and of one in a register ("float").
std::string_view memory_type(DType dtype);
std::string_view scalar_type(DType dtype);
// The vector type of elements in registers; "i32v" for Bool.
std::string_view vector_type(DType dtype);

// The text of the prelude for kernels with `lanes` lanes that call `functions` ("exp_f32", "load_bf16"), with
// what these call in turn. InternalError if a name is unknown.
std::string prelude(const std::set<std::string>& functions, int lanes, const Target& target);

}  // namespace oxy::backend::cpu
