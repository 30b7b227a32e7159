// A value of a Triton kernel while it is printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "aten/dtype.h"
#include "loop/program.h"

namespace oxy::backend::cuda {

// The dimensions of the block that a value varies along. None: one value a program.
enum Dims : uint8_t { kNoDims = 0, kRows = 1, kColumns = 2 };

struct Value {
  std::string text;              // a name or literal
  DType dtype = DType::Float32;  // as held: half types are held in float32
  unsigned dims = kNoDims;
  const loop::Scalar* constant = nullptr;  // a literal's
  std::string index;  // the same number in the type of indices, where it is one; or empty
};

// The type that values of `dtype` are held in.
constexpr DType held_dtype(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

std::string_view triton_type(DType dtype);   // "tl.float32"; Unsupported if Triton has none
std::string_view pointer_type(DType dtype);  // "*fp32", as in a signature
std::string_view torch_type(DType dtype);    // "torch.float32"

// `value` as Triton text of a type held as `dtype`; of all but float32 and int32 with the type spelled out.
std::string literal(const loop::Scalar& value, DType dtype);

}  // namespace oxy::backend::cuda
