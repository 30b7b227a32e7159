#include "ops/core/bounds.h"

#include <algorithm>
#include <cmath>

namespace oxy::ops {

namespace {

std::optional<Bounds> exactly(double number) {
  return widened({number, number});
}

// Of a comparison that holds for sure, or fails for sure, or is a truth value all the same.
std::optional<Bounds> truth(bool always, bool never) {
  return Bounds{always ? 1.0 : 0.0, never ? 0.0 : 1.0};
}

using Compare = std::optional<Bounds> (*)(const Bounds& a, const Bounds& b);

std::optional<Bounds> compared(const BoundsOfArgument& arguments, Compare compare) {
  const std::optional<Bounds> a = arguments(0), b = arguments(1);
  return a && b ? compare(*a, *b) : Bounds{0, 1};
}

// An integer that may be as large as its type holds must not get larger: it would turn round.
std::optional<Bounds> added(const Bounds& a, const Bounds& b) {
  const auto may_rise = [](const Bounds& x, const Bounds& by) { return std::isinf(x.high) && by.high > 0; };
  const auto may_fall = [](const Bounds& x, const Bounds& by) { return std::isinf(x.low) && by.low < 0; };
  if (may_rise(a, b) || may_rise(b, a) || may_fall(a, b) || may_fall(b, a)) return std::nullopt;
  return widened({a.low + b.low, a.high + b.high});
}

bool is_truth(const std::optional<Bounds>& bounds) {
  return bounds && bounds->low >= 0 && bounds->high <= 1;
}

}  // namespace

Bounds widened(Bounds bounds) {
  bounds.low = bounds.low < -kLargestBound ? Bounds{}.low : std::floor(std::min(bounds.low, kLargestBound));
  bounds.high =
      bounds.high > kLargestBound ? Bounds{}.high : std::ceil(std::max(bounds.high, -kLargestBound));
  return bounds;
}

std::optional<Bounds> bounds_of_number(const graph::Argument& argument) {
  if (const bool* flag = std::get_if<bool>(&argument)) return exactly(*flag ? 1 : 0);
  if (const double* number = std::get_if<double>(&argument))
    return std::isnan(*number) ? std::nullopt : exactly(*number);
  const Expr* integer = std::get_if<Expr>(&argument);
  if (integer == nullptr) return std::nullopt;
  const sym::Range range = integer->range();
  return widened({static_cast<double>(range.low), static_cast<double>(range.high)});
}

namespace bounds {

std::optional<Bounds> zeros(const BoundsOfArgument& /*arguments*/) {
  return exactly(0);
}

std::optional<Bounds> ones(const BoundsOfArgument& /*arguments*/) {
  return exactly(1);
}

std::optional<Bounds> filled(const BoundsOfArgument& arguments) {
  return arguments(1);
}

std::optional<Bounds> scalar_tensor(const BoundsOfArgument& arguments) {
  return arguments(0);
}

std::optional<Bounds> count_to(const BoundsOfArgument& arguments) {
  const std::optional<Bounds> end = arguments(0);
  return Bounds{0, end ? std::max(end->high, 0.0) : Bounds{}.high};
}

std::optional<Bounds> count_from(const BoundsOfArgument& arguments) {
  const std::optional<Bounds> start = arguments(0), end = arguments(1);
  if (!start || !end) return std::nullopt;
  return Bounds{std::min(start->low, end->low), std::max(start->high, end->high)};
}

std::optional<Bounds> sum(const BoundsOfArgument& arguments) {
  const std::optional<Bounds> a = arguments(0), b = arguments(1), factor = arguments(2);
  if (!a || !b || !factor || factor->low != 1 || factor->high != 1) return std::nullopt;
  return added(*a, *b);
}

std::optional<Bounds> difference(const BoundsOfArgument& arguments) {
  const std::optional<Bounds> a = arguments(0), b = arguments(1), factor = arguments(2);
  if (!a || !b || !factor || factor->low != 1 || factor->high != 1) return std::nullopt;
  return added(*a, {-b->high, -b->low});
}

std::optional<Bounds> less(const BoundsOfArgument& arguments) {
  return compared(arguments,
                  [](const Bounds& a, const Bounds& b) { return truth(a.high < b.low, a.low >= b.high); });
}

std::optional<Bounds> less_equal(const BoundsOfArgument& arguments) {
  return compared(arguments,
                  [](const Bounds& a, const Bounds& b) { return truth(a.high <= b.low, a.low > b.high); });
}

std::optional<Bounds> greater(const BoundsOfArgument& arguments) {
  return compared(arguments,
                  [](const Bounds& a, const Bounds& b) { return truth(a.low > b.high, a.high <= b.low); });
}

std::optional<Bounds> greater_equal(const BoundsOfArgument& arguments) {
  return compared(arguments,
                  [](const Bounds& a, const Bounds& b) { return truth(a.low >= b.high, a.high < b.low); });
}

std::optional<Bounds> conjunction(const BoundsOfArgument& arguments) {
  const std::optional<Bounds> a = arguments(0), b = arguments(1);
  if (!is_truth(a) || !is_truth(b)) return std::nullopt;
  return Bounds{std::min(a->low, b->low), std::min(a->high, b->high)};
}

std::optional<Bounds> disjunction(const BoundsOfArgument& arguments) {
  const std::optional<Bounds> a = arguments(0), b = arguments(1);
  if (!is_truth(a) || !is_truth(b)) return std::nullopt;
  return Bounds{std::max(a->low, b->low), std::max(a->high, b->high)};
}

std::optional<Bounds> chosen(const BoundsOfArgument& arguments) {
  const std::optional<Bounds> condition = arguments(0), a = arguments(1), b = arguments(2);
  if (condition && condition->low >= 1) return a;
  if (condition && condition->high <= 0) return b;
  if (!a || !b) return std::nullopt;
  return Bounds{std::min(a->low, b->low), std::max(a->high, b->high)};
}

}  // namespace bounds

}  // namespace oxy::ops
