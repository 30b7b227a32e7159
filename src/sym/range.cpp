// Interval arithmetic over Range.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "sym/node.h"

namespace oxy::sym {

namespace {

bool unbounded(int64_t value) {
  return value >= kMaxInt || value <= -kMaxInt;
}

int64_t clamp(__int128 value) {
  if (value >= kMaxInt) return kMaxInt;
  if (value <= -kMaxInt) return kMinInt;
  return static_cast<int64_t>(value);
}

int64_t add_low(int64_t a, int64_t b) {
  if (a <= -kMaxInt || b <= -kMaxInt) return kMinInt;
  return clamp(static_cast<__int128>(a) + b);
}

int64_t add_high(int64_t a, int64_t b) {
  if (a >= kMaxInt || b >= kMaxInt) return kMaxInt;
  return clamp(static_cast<__int128>(a) + b);
}

Range multiply(Range a, Range b) {
  int64_t low = kMaxInt;
  int64_t high = kMinInt;
  for (int64_t x : {a.low, a.high})
    for (int64_t y : {b.low, b.high}) {
      int64_t value = clamp(static_cast<__int128>(x) * y);
      low = std::min(low, value);
      high = std::max(high, value);
    }
  return {low, high};
}

Range divide(Range a, Range b) {
  if (b.low < 1) return {};
  int64_t low = kMaxInt;
  int64_t high = kMinInt;
  for (int64_t x : {a.low, a.high})
    for (int64_t y : {b.low, b.high}) {
      int64_t value = floor_divide(x, y);
      if (unbounded(x)) value = unbounded(y) ? (x > 0 ? 0 : -1) : (x > 0 ? kMaxInt : kMinInt);
      low = std::min(low, value);
      high = std::max(high, value);
    }
  return {low, high};
}

Range modulo(Range a, Range b) {
  if (b.low < 1) return {};
  if (a.low >= 0 && a.high < b.low) return a;
  int64_t high = unbounded(b.high) ? kMaxInt : b.high - 1;
  return {0, a.low >= 0 ? std::min(high, a.high) : high};
}

}  // namespace

Range range_of(Kind kind, std::span<const Expr> operands) {
  Range result = operands[0].range();
  for (const Expr& operand : operands.subspan(1)) {
    Range r = operand.range();
    switch (kind) {
      case Kind::Sum:
        result = {add_low(result.low, r.low), add_high(result.high, r.high)};
        break;
      case Kind::Product:
        result = multiply(result, r);
        break;
      case Kind::FloorDiv:
        result = divide(result, r);
        break;
      case Kind::Mod:
        result = modulo(result, r);
        break;
      case Kind::Min:
        result = {std::min(result.low, r.low), std::min(result.high, r.high)};
        break;
      case Kind::Max:
        result = {std::max(result.low, r.low), std::max(result.high, r.high)};
        break;
      default:
        break;
    }
  }
  return result;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) [[unlikely]]
    throw ArithmeticError("sizes are computed with numbers of more than 64 bits");
  return result;
}

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) [[unlikely]]
    throw ArithmeticError("sizes are computed with numbers of more than 64 bits");
  return result;
}

}  // namespace oxy::sym
