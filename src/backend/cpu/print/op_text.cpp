#include "backend/cpu/print/op_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "backend/cpu/print/prelude.h"
#include "backend/nests/element_text.h"
#include "base/error.h"
#include "loop/builder.h"
#include "loop/number.h"

namespace oxy::backend::cpu {

using loop::Op;
using loop::Scalar;

namespace {

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}
// The type that arithmetic on `dtype` uses.
DType register_dtype(DType dtype) {
  return is_half(dtype) ? DType::Float32 : dtype;
}
std::string_view suffix(DType dtype) {
  return short_name(register_dtype(dtype));
}

double as_double(const Scalar& scalar) {
  return std::visit([](auto v) { return static_cast<double>(v); }, scalar.value);
}

std::string_view infix(Op op) {
  return op == Op::Div ? "/" : backend::infix(op);
}

// Prelude functions by operator: NAME_<type>.
std::string_view function_name(Op op) {
  switch (op) {
    case Op::Abs:
      return "abs";
    case Op::Sign:
      return "sign";
    case Op::Exp:
      return "exp";
    case Op::Exp2:
      return "exp2";
    case Op::Expm1:
      return "expm1";
    case Op::Log:
      return "log";
    case Op::Log2:
      return "log2";
    case Op::Log10:
      return "log10";
    case Op::Log1p:
      return "log1p";
    case Op::Sqrt:
      return "sqrt";
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
    case Op::Sigmoid:
      return "sigmoid";
    case Op::NormalCdf:
      return "normal_cdf";
    case Op::Erf:
      return "erf";
    case Op::Erfc:
      return "erfc";
    case Op::Floor:
      return "floor";
    case Op::Ceil:
      return "ceil";
    case Op::Trunc:
      return "trunc";
    case Op::Round:
      return "round";
    case Op::FloorDiv:
      return "floor_div";
    case Op::TruncDiv:
      return "trunc_div";
    case Op::Mod:
      return "mod";
    case Op::Fmod:
      return "fmod";
    case Op::Pow:
      return "pow";
    case Op::Atan2:
      return "atan2";
    case Op::Minimum:
      return "minimum";
    case Op::Maximum:
      return "maximum";
    case Op::ShiftLeft:
      return "shift_left";
    case Op::ShiftRight:
      return "shift_right";
    case Op::Fma:
      return "fma";
    default:
      return "";
  }
}

bool divides_integers(Op op) {
  return op == Op::FloorDiv || op == Op::TruncDiv || op == Op::Mod || op == Op::Fmod;
}

// A comparison of vectors as an i32v.
std::string as_mask(std::string comparison, DType operands) {
  if (item_size(register_dtype(operands)) == 4 || operands == DType::Bool) return "(" + comparison + ")";
  return fmt::format("__builtin_convertvector({}, i32v)", comparison);
}

std::string infix_text(const NestInst& inst, std::span<const Operand> operands, OpContext& context) {
  DType dtype = register_dtype(operands[0].dtype);
  bool mixes =
      item_size(dtype) >= 4 && dtype != DType::Bool;  // GNU vectors take scalars of their element type
  auto text = [&](size_t i) {
    if (!context.vector || operands[i].vector) return operands[i].text;
    return mixes && operands[1 - i].vector ? operands[i].text : as_vector(operands[i], context);
  };
  std::string expression = fmt::format("{} {} {}", text(0), infix(inst.op), text(1));
  if (loop::is_comparison(inst.op))
    return context.vector ? as_mask(expression, dtype) : "(" + expression + ")";
  if (!context.vector && is_integral(dtype)) {  // wraps
    return fmt::format("({0})((uint64_t){1} {2} (uint64_t){3})", scalar_type(dtype), text(0), infix(inst.op),
                       text(1));
  }
  return "(" + expression + ")";
}

std::string bool_text(const NestInst& inst, std::span<const Operand> operands, OpContext& context) {
  auto text = [&](size_t i) { return context.vector ? as_vector(operands[i], context) : operands[i].text; };
  std::string_view no = context.vector ? "~" : "!";
  switch (inst.op) {
    case Op::Add:
    case Op::BitOr:
    case Op::Maximum:
      return fmt::format("({} | {})", text(0), text(1));
    case Op::Mul:
    case Op::BitAnd:
    case Op::Minimum:
      return fmt::format("({} & {})", text(0), text(1));
    case Op::Sub:
    case Op::BitXor:
    case Op::Ne:
      return fmt::format("({} ^ {})", text(0), text(1));
    case Op::Eq:
      return fmt::format("{}({} ^ {})", no, text(0), text(1));
    case Op::Lt:
      return fmt::format("({}{} & {})", no, text(0), text(1));
    case Op::Le:
      return fmt::format("({}{} | {})", no, text(0), text(1));
    case Op::Gt:
      return fmt::format("({} & {}{})", text(0), no, text(1));
    case Op::Ge:
      return fmt::format("({} | {}{})", text(0), no, text(1));
    case Op::Not:
      return fmt::format("{}{}", no, text(0));
    default:
      throw Unsupported(fmt::format("{} of truth values in a generated kernel", loop::op_name(inst.op)));
  }
}

// x to a constant power by multiplications, where eager does the same.
std::optional<std::string> constant_power(std::span<const Operand> operands, OpContext& context) {
  if (!operands[1].constant || !is_floating(operands[0].dtype)) return std::nullopt;
  double exponent = as_double(*operands[1].constant);
  Operand base = operands[0];
  if (context.vector && !base.vector) base = {as_vector(base, context), base.dtype, true, nullptr};
  const std::string& x = base.text;
  std::string one = literal(Scalar{1.0}, register_dtype(base.dtype));
  auto sqrt = [&] { return call_text(fmt::format("sqrt_{}", suffix(base.dtype)), {&base, 1}, context); };
  if (exponent == 1) return x;
  if (exponent == 2) return fmt::format("({0} * {0})", x);
  if (exponent == 3) return fmt::format("({0} * {0} * {0})", x);
  if (exponent == 0.5) return sqrt();
  if (exponent == -0.5) return fmt::format("({} / {})", one, sqrt());
  if (exponent == -1) return fmt::format("({} / {})", one, x);
  if (exponent == -2) return fmt::format("({} / ({} * {}))", one, x, x);
  return std::nullopt;
}

}  // namespace

std::string literal(const Scalar& value, DType dtype) {
  if (dtype == DType::Bool) return std::visit([](auto v) { return v != 0; }, value.value) ? "true" : "false";
  if (is_floating(dtype)) {
    double v = as_double(value);
    bool wide = dtype == DType::Float64;
    std::string_view mark = wide ? "" : "f";
    if (std::isnan(v)) return fmt::format("__builtin_nan{}(\"\")", mark);
    if (std::isinf(v)) return fmt::format("{}__builtin_inf{}()", v < 0 ? "-" : "", mark);
    std::string digits = wide ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
    if (!wide && std::isinf(static_cast<float>(v)))
      return fmt::format("{}__builtin_inff()", v < 0 ? "-" : "");
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return digits + std::string(mark);
  }
  const int64_t v = integer_of(value);
  if (v == std::numeric_limits<int64_t>::min())
    return fmt::format("{}(-9223372036854775807 - 1)", scalar_type(dtype));
  return fmt::format("{}({})", scalar_type(dtype), v);
}

std::string as_vector(const Operand& operand, OpContext& context) {
  if (operand.vector) return operand.text;
  std::string function = fmt::format("splat_{}", suffix(operand.dtype));
  context.functions.insert(function);
  return fmt::format("{}({})", function, operand.text);
}

std::string call_text(const std::string& function, std::span<const Operand> operands, OpContext& context,
                      std::string_view more_arguments) {
  context.functions.insert(function);
  std::string arguments;
  for (const Operand& operand : operands)
    arguments += (arguments.empty() ? "" : ", ") + as_vector(operand, context);
  return fmt::format("{}({}{}){}", function, arguments, more_arguments, context.vector ? "" : "[0]");
}

std::string select_text(const Operand& condition, const Operand& a, const Operand& b, DType dtype,
                        OpContext& context) {
  if (!condition.vector) {
    if (!context.vector) return fmt::format("({} ? {} : {})", condition.text, a.text, b.text);
    return fmt::format("({} ? {} : {})", condition.text, as_vector(a, context), as_vector(b, context));
  }
  std::string function = fmt::format("select_{}", suffix(dtype));
  context.functions.insert(function);
  return fmt::format("{}({}, {}, {})", function, condition.text, as_vector(a, context),
                     as_vector(b, context));
}

std::string cast_text(const Operand& operand, DType to, OpContext& context) {
  DType from = register_dtype(operand.dtype);
  if (is_half(to) && operand.dtype == to) return operand.text;
  if (is_half(to)) {
    Operand narrowed = operand;
    if (from != DType::Float32) {
      narrowed.text = cast_text(operand, DType::Float32, context);
      narrowed.dtype = DType::Float32;
    }
    OpContext inner{context.functions, operand.vector, context.count};
    return call_text(fmt::format("round_{}", short_name(to)), {&narrowed, 1}, inner);
  }
  if (from == to) return operand.text;
  if (!operand.vector) {
    if (to == DType::Bool) return fmt::format("({} != 0)", operand.text);
    if (is_floating(from) && is_integral(to)) {
      context.functions.insert("one_integer_of");
      return fmt::format("({})one_integer_of<{}>({})", scalar_type(to), scalar_type(loop::first_integer(to)),
                         operand.text);
    }
    return fmt::format("({}){}", scalar_type(to), operand.text);
  }
  if (to == DType::Bool) return as_mask(fmt::format("{} != 0", operand.text), from);
  if (from == DType::Bool)
    return to == DType::Int32
               ? fmt::format("(- {})", operand.text)
               : fmt::format("__builtin_convertvector(- {}, {})", operand.text, vector_type(to));
  if (is_floating(from) && is_integral(to)) {
    const DType between = loop::first_integer(to);
    context.functions.insert("integer_of");
    const std::string integer = fmt::format("integer_of<{}>({})", vector_type(between), operand.text);
    return between == to ? integer : fmt::format("__builtin_convertvector({}, {})", integer, vector_type(to));
  }
  return fmt::format("__builtin_convertvector({}, {})", operand.text, vector_type(to));
}

std::string op_text(const NestInst& inst, std::span<const Operand> operands, OpContext& context) {
  const Operand& x = operands[0];
  DType dtype = register_dtype(x.dtype);
  auto text = [&](const Operand& o) { return context.vector ? as_vector(o, context) : o.text; };
  switch (inst.op) {
    case Op::Cast:
      return cast_text(
          context.vector && !x.vector ? Operand{as_vector(x, context), x.dtype, true, nullptr} : x,
          inst.dtype, context);
    case Op::Bitcast:
      if (context.vector) return fmt::format("({}){}", vector_type(inst.dtype), text(x));
      return fmt::format("__builtin_bit_cast({}, {})", scalar_type(inst.dtype), x.text);
    case Op::Where:
      return select_text(operands[0], operands[1], operands[2], inst.dtype, context);
    case Op::IsNan:
      return context.vector ? as_mask(fmt::format("{0} != {0}", text(x)), dtype)
                            : fmt::format("({0} != {0})", x.text);
    case Op::IsInf: {
      std::string magnitude = call_text(fmt::format("abs_{}", suffix(dtype)), {&x, 1}, context);
      std::string infinity = literal(Scalar{std::numeric_limits<double>::infinity()}, dtype);
      std::string comparison = fmt::format("{} == {}", magnitude, infinity);
      return context.vector ? as_mask(comparison, dtype) : "(" + comparison + ")";
    }
    case Op::Philox:
      throw Unsupported("random numbers in a generated kernel");
    case Op::Reciprocal:
      return fmt::format("({} / {})", literal(Scalar{1.0}, dtype), text(x));
    case Op::Rsqrt:
      return fmt::format("({} / {})", literal(Scalar{1.0}, dtype),
                         call_text(fmt::format("sqrt_{}", suffix(dtype)), {&x, 1}, context));
    case Op::Neg:
      if (!context.vector && is_integral(dtype))
        return fmt::format("({})(0 - (uint64_t){})", scalar_type(dtype), x.text);
      return fmt::format("(- {})", text(x));
    default:
      break;
  }
  if (dtype == DType::Bool) return bool_text(inst, operands, context);
  if (inst.op == Op::Not)
    return fmt::format("({})(~{})", context.vector ? vector_type(dtype) : scalar_type(dtype), text(x));
  if (inst.op == Op::Pow)
    if (auto power = constant_power(operands, context)) return std::move(*power);
  if (!infix(inst.op).empty()) return infix_text(inst, operands, context);
  if (is_integral(dtype) &&
      (inst.op == Op::Floor || inst.op == Op::Ceil || inst.op == Op::Trunc || inst.op == Op::Round))
    return text(x);
  std::string_view function = function_name(inst.op);
  check(!function.empty(), fmt::format("no text for the instruction {}", loop::op_name(inst.op)));
  std::string more = divides_integers(inst.op) && is_integral(dtype) ? ", error, " + context.count : "";
  if (inst.op == Op::Mod && is_integral(dtype) && x.vector && !operands[1].vector)
    return call_text(fmt::format("mod_by_{}", suffix(dtype)), operands.first(1), context,
                     ", " + operands[1].text + more);
  return call_text(fmt::format("{}_{}", function, suffix(dtype)), operands, context, more);
}

}  // namespace oxy::backend::cpu
