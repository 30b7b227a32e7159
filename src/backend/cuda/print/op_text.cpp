#include "backend/cuda/print/op_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backend/nests/element_text.h"
#include "base/error.h"
#include "loop/builder.h"
#include "loop/number.h"

namespace oxy::backend::cuda {

using loop::Op;

namespace {

// Functions of one floating operand that Triton's language has for float32 and float64.
std::string_view language_function(Op op) {
  switch (op) {
    case Op::Exp:
      return "tl.exp";
    case Op::Exp2:
      return "tl.exp2";
    case Op::Log:
      return "tl.log";
    case Op::Log2:
      return "tl.log2";
    case Op::Rsqrt:
      return "tl.rsqrt";
    case Op::Erf:
      return "tl.erf";
    case Op::Floor:
      return "tl.floor";
    case Op::Ceil:
      return "tl.ceil";
    default:
      return "";
  }
}

// Those of NVIDIA's library.
std::string_view library_function(Op op) {
  switch (op) {
    case Op::Expm1:
      return "expm1";
    case Op::Log10:
      return "log10";
    case Op::Log1p:
      return "log1p";
    case Op::Sin:
      return "sin";
    case Op::Cos:
      return "cos";
    case Op::Tan:
      return "tan";
    case Op::Asin:
      return "asin";
    case Op::Acos:
      return "acos";
    case Op::Atan:
      return "atan";
    case Op::Sinh:
      return "sinh";
    case Op::Cosh:
      return "cosh";
    case Op::Tanh:
      return "tanh";
    case Op::Asinh:
      return "asinh";
    case Op::Acosh:
      return "acosh";
    case Op::Atanh:
      return "atanh";
    case Op::Erfc:
      return "erfc";
    case Op::Round:
      return "rint";
    case Op::Pow:
      return "pow";
    case Op::Atan2:
      return "atan2";
    case Op::Fmod:
      return "fmod";
    default:
      return "";
  }
}

std::string call(std::string_view function, std::span<const Value> operands) {
  std::string arguments;
  for (const Value& x : operands) arguments += (arguments.empty() ? "" : ", ") + tensor_text(x);
  return fmt::format("{}({})", function, arguments);
}

std::string divided(const std::string& a, const std::string& b, DType dtype, const OpContext& context) {
  if (dtype == DType::Float32 && context.is_precise) return fmt::format("tl.div_rn({}, {})", a, b);
  return fmt::format("{} / {}", a, b);
}

// e to the power of -x, for what adds it to 1: the power of two is one instruction, but 0 where it is too
// small to be a normal number.
std::string power_of_negated(const std::string& x, DType dtype, const OpContext& context) {
  const bool is_short = dtype == DType::Float32 && !context.is_precise;
  return is_short ? fmt::format("tl.exp2({} * -1.442695)", x) : fmt::format("tl.exp(-{})", x);
}

std::string one(DType dtype) {
  return fmt::format("tl.full([], 1.0, {})", triton_type(dtype));
}

std::string square_root(const Value& x, DType dtype) {
  return fmt::format("{}({})", dtype == DType::Float32 ? "tl.sqrt_rn" : "tl.sqrt", tensor_text(x));
}

std::string bool_text(Op op, std::span<const Value> operands) {
  const auto text = [&](size_t i) { return tensor_text(operands[i]); };
  switch (op) {
    case Op::Add:
    case Op::BitOr:
    case Op::Maximum:
      return fmt::format("{} | {}", text(0), text(1));
    case Op::Mul:
    case Op::BitAnd:
    case Op::Minimum:
      return fmt::format("{} & {}", text(0), text(1));
    case Op::Sub:
    case Op::BitXor:
    case Op::Ne:
      return fmt::format("{} ^ {}", text(0), text(1));
    case Op::Eq:
      return fmt::format("~({} ^ {})", text(0), text(1));
    case Op::Lt:
      return fmt::format("~{} & {}", text(0), text(1));
    case Op::Le:
      return fmt::format("~{} | {}", text(0), text(1));
    case Op::Gt:
      return fmt::format("{} & ~{}", text(0), text(1));
    case Op::Ge:
      return fmt::format("{} | ~{}", text(0), text(1));
    case Op::Not:
      return fmt::format("~{}", text(0));
    default:
      throw Unsupported(fmt::format("{} of truth values in a generated kernel", loop::op_name(op)));
  }
}

// x to a constant power by multiplications, where eager does the same.
std::optional<std::string> constant_power(std::span<const Value> operands, DType dtype,
                                          const OpContext& context) {
  if (!operands[1].constant) return std::nullopt;
  const double exponent =
      std::visit([](auto v) { return static_cast<double>(v); }, operands[1].constant->value);
  const std::string x = tensor_text(operands[0]);
  if (exponent == 1) return x;
  if (exponent == 2) return fmt::format("{0} * {0}", x);
  if (exponent == 3) return fmt::format("{0} * {0} * {0}", x);
  if (exponent == 0.5) return square_root(operands[0], dtype);
  if (exponent == -0.5) return divided(one(dtype), square_root(operands[0], dtype), dtype, context);
  if (exponent == -1) return divided(one(dtype), x, dtype, context);
  if (exponent == -2) return divided(one(dtype), fmt::format("({0} * {0})", x), dtype, context);
  return std::nullopt;
}

std::string floating_text(const NestInst& inst, std::span<const Value> operands, DType dtype,
                          OpContext& context) {
  const auto text = [&](size_t i) { return tensor_text(operands[i]); };
  const auto helper = [&](const char* name, std::span<const Value> arguments) {
    context.needs.helpers.insert(name);
    return call(name, arguments);
  };
  switch (inst.op) {
    case Op::Div:
      return divided(text(0), text(1), dtype, context);
    case Op::Reciprocal:
      return divided(one(dtype), text(0), dtype, context);
    case Op::Sqrt:
      return square_root(operands[0], dtype);
    case Op::Sign:
      return fmt::format("({0} > 0).to({1}) - ({0} < 0).to({1})", text(0), triton_type(dtype));
    case Op::Sigmoid:
      return divided(one(dtype), fmt::format("(1.0 + {})", power_of_negated(text(0), dtype, context)), dtype,
                     context);
    case Op::Tanh:
      if (!inst.rounded_to) break;
      context.needs.libdevice = true;
      return helper("tanh_for_half", operands);
    case Op::NormalCdf:
      if (inst.rounded_to) return helper("normal_cdf_for_half", operands);
      return fmt::format("tl.erf({} * 0.7071067811865476) * 0.5 + 0.5", text(0));
    case Op::Erf:
      if (!inst.rounded_to) break;
      context.needs.libdevice = true;
      return helper("erf_for_half", operands);
    case Op::Trunc:
      return helper("truncated", operands);
    case Op::TruncDiv:
      context.needs.helpers.insert("truncated");
      return fmt::format("truncated({})", divided(text(0), text(1), dtype, context));
    case Op::FloorDiv:
      context.needs.libdevice = true;
      return helper("floor_quotient", operands);
    case Op::Mod:
      context.needs.libdevice = true;
      return helper("floor_remainder", operands);
    case Op::Minimum:
      return helper("smaller", operands);
    case Op::Maximum:
      return helper("larger", operands);
    case Op::Pow:
      if (auto power = constant_power(operands, dtype, context)) return std::move(*power);
      break;
    default:
      break;
  }
  if (const std::string_view function = language_function(inst.op); !function.empty())
    return call(function, operands);
  const std::string_view function = library_function(inst.op);
  check(!function.empty(), fmt::format("no Triton text for the instruction {}", loop::op_name(inst.op)));
  context.needs.libdevice = true;
  return call(fmt::format("libdevice.{}", function), operands);
}

std::string integer_text(const NestInst& inst, std::span<const Value> operands, DType dtype,
                         OpContext& context) {
  const auto text = [&](size_t i) { return tensor_text(operands[i]); };
  const auto helper = [&](const char* name) {
    context.needs.helpers.insert(name);
    return call(name, operands);
  };
  const size_t bits = 8 * item_size(dtype);
  switch (inst.op) {
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
      return text(0);
    case Op::Not:
      return fmt::format("~{}", text(0));
    case Op::Sign:
      return fmt::format("({0} > 0).to({1}) - ({0} < 0).to({1})", text(0), triton_type(dtype));
    case Op::TruncDiv:
      return fmt::format("{} // {}", text(0), text(1));
    case Op::Fmod:
      return fmt::format("{} % {}", text(0), text(1));
    case Op::FloorDiv:
      return is_signed(dtype) ? helper("floor_divide") : fmt::format("{} // {}", text(0), text(1));
    case Op::Mod:
      return is_signed(dtype) ? helper("floor_modulo") : fmt::format("{} % {}", text(0), text(1));
    case Op::Minimum:
      return call("tl.minimum", operands);
    case Op::Maximum:
      return call("tl.maximum", operands);
    case Op::ShiftLeft:
      return fmt::format("tl.where(({1} >= 0) & ({1} < {2}), {0} << ({1} & {3}), {0} * 0)", text(0), text(1),
                         bits, bits - 1);
    case Op::ShiftRight:
      return fmt::format("{0} >> tl.where(({1} >= 0) & ({1} < {2}), {1}, {1} * 0 + {3})", text(0), text(1),
                         bits, bits - 1);
    case Op::Pow:
      context.needs.helpers.insert("integer_power");
      return fmt::format("integer_power({}, {}, {})", text(0), text(1), bits);
    default:
      throw Unsupported(fmt::format("{} of integers in a generated kernel", loop::op_name(inst.op)));
  }
}

// A constant without its type where any number of Python's is exact: float64 is not.
std::string number_text(const Value& x) {
  if (!x.constant || is_floating(x.dtype) || x.dtype == DType::Bool) return x.text;
  return literal(*x.constant, DType::Int32);
}

}  // namespace

std::string tensor_text(const Value& x) {
  const bool is_number = x.constant && (x.dtype == DType::Float32 || x.dtype == DType::Int32);
  return is_number ? fmt::format("tl.full([], {}, {})", x.text, triton_type(x.dtype)) : x.text;
}

std::string cast_text(const Value& x, DType to) {
  const std::string text = tensor_text(x);
  const DType from = held_dtype(x.dtype);
  const auto converted = [](const std::string& value, DType dtype) {
    return fmt::format("{}.to({})", value, triton_type(dtype));
  };
  if (held_dtype(to) != to) {
    const std::string single = from == DType::Float32 ? text : converted(text, DType::Float32);
    return converted(converted(single, to), DType::Float32);
  }
  if (from == to) return text;
  if (to == DType::Bool) return fmt::format("{} != 0", text);
  if (is_floating(from) && !is_floating(to)) {
    const DType between = loop::first_integer(to);
    return between == to ? converted(text, to) : converted(converted(text, between), to);
  }
  return converted(text, to);
}

std::string op_text(const NestInst& inst, std::span<const Value> operands, OpContext& context) {
  const DType dtype = held_dtype(operands[0].dtype);
  const auto text = [&](size_t i) { return tensor_text(operands[i]); };
  switch (inst.op) {
    case Op::Cast:
      return cast_text(operands[0], inst.dtype);
    case Op::Bitcast:
      return fmt::format("{}.to({}, bitcast=True)", text(0), triton_type(inst.dtype));
    case Op::Where:
      return fmt::format("tl.where({}, {}, {})", text(0), operands[1].text, operands[2].text);
    case Op::Philox:
      context.needs.helpers.insert("uniform_number");
      return call("uniform_number", operands);
    case Op::IsNan:
      return fmt::format("{0} != {0}", text(0));
    case Op::IsInf:
      return fmt::format("tl.abs({}) == float(\"inf\")", text(0));
    default:
      break;
  }
  if (dtype == DType::Bool) return bool_text(inst.op, operands);
  if (inst.op == Op::Neg) return is_floating(dtype) || is_signed(dtype) ? "-" + text(0) : "0 - " + text(0);
  if (inst.op == Op::Abs) return is_floating(dtype) || is_signed(dtype) ? call("tl.abs", operands) : text(0);
  if (inst.op == Op::Fma)
    return is_floating(dtype) ? call("tl.fma", operands)
                              : fmt::format("{} * {} + {}", text(0), text(1), text(2));
  if (const std::string_view between = infix(inst.op); !between.empty()) {
    // One operand may be a number, which takes the other's type.
    const bool both = operands[0].constant && operands[1].constant;
    return fmt::format("{} {} {}", both ? text(0) : number_text(operands[0]), between,
                       both ? text(1) : number_text(operands[1]));
  }
  return is_floating(dtype) ? floating_text(inst, operands, dtype, context)
                            : integer_text(inst, operands, dtype, context);
}

}  // namespace oxy::backend::cuda
