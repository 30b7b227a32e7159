// One instruction of an element program as a C++ expression, on scalars or on vectors.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cpu {

struct Operand {
  std::string text;
  DType dtype = DType::Float32;
  bool vector = false;
  const loop::Scalar* constant = nullptr;  // if it is one
};

struct OpContext {
  std::set<std::string>& functions;  // receives the prelude functions called
  bool vector = false;               // the result is one
  std::string count;                 // lanes in use: "n", or "1" for scalars
};

// Any instruction but Load, Index and BindIndex.
std::string op_text(const NestInst& inst, std::span<const Operand> operands, OpContext& context);
std::string literal(const loop::Scalar& value, DType dtype);  // "0.5f", "int64_t(3)", "true"
// The operand as a vector.
std::string as_vector(const Operand& operand, OpContext& context);
std::string cast_text(const Operand& operand, DType to, OpContext& context);
// The function of this name on scalars or vectors: "exp_f32(x)".
std::string call_text(const std::string& function, std::span<const Operand> operands, OpContext& context,
                      std::string_view more_arguments = "");
std::string select_text(const Operand& condition, const Operand& a, const Operand& b, DType dtype,
                        OpContext& context);

}  // namespace oxy::backend::cpu
