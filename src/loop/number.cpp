#include "loop/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "loop/builder.h"

namespace oxy::loop {

namespace {

double round_bfloat16(double x) {
  auto narrow = static_cast<float>(x);
  if (std::isnan(narrow)) return narrow;
  auto bits = std::bit_cast<uint32_t>(narrow);
  bits += 0x7FFF + ((bits >> 16) & 1);
  return std::bit_cast<float>(bits & 0xFFFF0000u);
}

double round_float16(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = std::max(std::ilogb(x), -14);
  double unit = std::ldexp(1.0, exponent - 10);
  double rounded = std::nearbyint(x / unit) * unit;
  return std::abs(rounded) > 65504 ? std::copysign(INFINITY, x) : rounded;
}

int64_t wrap_integer(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return value != 0;
    case DType::UInt8:
      return static_cast<uint8_t>(value);
    case DType::Int8:
      return static_cast<int8_t>(value);
    case DType::Int16:
      return static_cast<int16_t>(value);
    case DType::Int32:
      return static_cast<int32_t>(value);
    case DType::UInt16:
      return static_cast<uint16_t>(value);
    case DType::UInt32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

int64_t truncated(double x, DType to) {
  if (first_integer(to) == DType::Int32)
    return std::abs(x) < 0x1p31 ? static_cast<int64_t>(x) : std::numeric_limits<int32_t>::min();
  return std::abs(x) < 0x1p63 ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
}

// a // b as Python has it: the quotient is exact where a / b would round up to the next integer.
double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

}  // namespace

DType first_integer(DType to) {
  return item_size(to) < 4 || to == DType::Int32 ? DType::Int32 : DType::Int64;
}

Number rounded(Number n, DType dtype) {
  switch (dtype) {
    case DType::Float32:
      n.f = static_cast<float>(n.f);
      break;
    case DType::BFloat16:
      n.f = round_bfloat16(n.f);
      break;
    case DType::Float16:
      n.f = round_float16(n.f);
      break;
    case DType::Float64:
      break;
    default:
      n.i = wrap_integer(n.i, dtype);
  }
  return n;
}

Number converted(Number n, DType from, DType to) {
  bool source_floats = is_floating(from);
  if (is_floating(to)) {
    n.f = source_floats ? n.f : static_cast<double>(n.i);
  } else if (source_floats) {
    n.i = to == DType::Bool ? n.f != 0 : truncated(n.f, to);
  } else if (to == DType::Bool) {
    n.i = n.i != 0;
  }
  return rounded(n, to);
}

double unary(Op op, double x) {
  switch (op) {
    case Op::Neg:
      return -x;
    case Op::Abs:
      return std::abs(x);
    case Op::Sign:
      return (x > 0) - (x < 0);  // 0 for a NaN, as eager
    case Op::Exp:
      return std::exp(x);
    case Op::Exp2:
      return std::exp2(x);
    case Op::Expm1:
      return std::expm1(x);
    case Op::Log:
      return std::log(x);
    case Op::Log2:
      return std::log2(x);
    case Op::Log10:
      return std::log10(x);
    case Op::Log1p:
      return std::log1p(x);
    case Op::Sqrt:
      return std::sqrt(x);
    case Op::Rsqrt:
      return 1 / std::sqrt(x);
    case Op::Reciprocal:
      return 1 / x;
    case Op::Sin:
      return std::sin(x);
    case Op::Cos:
      return std::cos(x);
    case Op::Tan:
      return std::tan(x);
    case Op::Asin:
      return std::asin(x);
    case Op::Acos:
      return std::acos(x);
    case Op::Atan:
      return std::atan(x);
    case Op::Sinh:
      return std::sinh(x);
    case Op::Cosh:
      return std::cosh(x);
    case Op::Tanh:
      return std::tanh(x);
    case Op::Asinh:
      return std::asinh(x);
    case Op::Acosh:
      return std::acosh(x);
    case Op::Atanh:
      return std::atanh(x);
    case Op::Sigmoid:
      return 1 / (1 + std::exp(-x));
    case Op::NormalCdf:
      return 0.5 * std::erfc(-x * 0.70710678118654752440);
    case Op::Erf:
      return std::erf(x);
    case Op::Erfc:
      return std::erfc(x);
    case Op::Floor:
      return std::floor(x);
    case Op::Ceil:
      return std::ceil(x);
    case Op::Trunc:
      return std::trunc(x);
    case Op::Round:
      return std::nearbyint(x);
    default:
      throw InternalError(fmt::format("{} of a floating number", op_name(op)));
  }
}

int64_t unary(Op op, int64_t x, DType dtype) {
  switch (op) {
    case Op::Neg:
      return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
    case Op::Abs:
      return x < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x;
    case Op::Sign:
      return (x > 0) - (x < 0);
    case Op::Not:
      return dtype == DType::Bool ? !x : ~x;
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
      return x;
    default:
      throw InternalError(fmt::format("{} of an integer", op_name(op)));
  }
}

double binary(Op op, double a, double b) {
  bool has_nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::FloorDiv:
      return floor_quotient(a, b);
    case Op::TruncDiv:
      return std::trunc(a / b);
    case Op::Mod: {
      double r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case Op::Fmod:
      return std::fmod(a, b);
    case Op::Pow:
      return std::pow(a, b);
    case Op::Atan2:
      return std::atan2(a, b);
    case Op::Minimum:
      return has_nan ? NAN : std::min(a, b);
    case Op::Maximum:
      return has_nan ? NAN : std::max(a, b);
    default:
      throw InternalError(fmt::format("{} of floating numbers", op_name(op)));
  }
}

int64_t binary(Op op, int64_t a, int64_t b) {
  auto x = static_cast<uint64_t>(a);
  auto y = static_cast<uint64_t>(b);
  bool divides = op == Op::FloorDiv || op == Op::TruncDiv || op == Op::Mod || op == Op::Fmod;
  if (divides && b == 0) throw UserError("integer division by zero");
  if (divides && b == -1) return op == Op::FloorDiv || op == Op::TruncDiv ? static_cast<int64_t>(0 - x) : 0;
  switch (op) {
    case Op::Add:
      return static_cast<int64_t>(x + y);
    case Op::Sub:
      return static_cast<int64_t>(x - y);
    case Op::Mul:
      return static_cast<int64_t>(x * y);
    case Op::FloorDiv:
      return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
    case Op::TruncDiv:
      return a / b;
    case Op::Mod:
      return a % b + ((a % b != 0 && (a < 0) != (b < 0)) ? b : 0);
    case Op::Fmod:
      return a % b;
    case Op::Pow: {
      uint64_t result = 1;
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
      for (int64_t n = b; n > 0; n >>= 1, x *= x)
        if ((n & 1) != 0) result *= x;
      return static_cast<int64_t>(result);
    }
    case Op::Minimum:
      return std::min(a, b);
    case Op::Maximum:
      return std::max(a, b);
    case Op::BitAnd:
      return a & b;
    case Op::BitOr:
      return a | b;
    case Op::BitXor:
      return a ^ b;
    case Op::ShiftLeft:
      return b < 0 || b > 63 ? 0 : static_cast<int64_t>(x << y);
    case Op::ShiftRight:
      return a >> (b < 0 || b > 63 ? 63 : b);
    default:
      throw InternalError(fmt::format("{} of integers", op_name(op)));
  }
}

}  // namespace oxy::loop
