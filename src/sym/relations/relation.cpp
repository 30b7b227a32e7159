#include "sym/relations/relation.h"

#include <numeric>

#include "sym/node.h"

namespace oxy::sym {

namespace {

// The terms' coefficients divided by what they share; the constant term by the same number, rounded down.
Expr divided(const Expr& value, int64_t divisor) {
  std::vector<Expr> list;
  for (const Expr& term : terms(value)) {
    const Monomial m = monomial(term);
    list.push_back(make_term(floor_divide(m.coefficient, divisor), m.factors));
  }
  return sum_of(std::move(list));
}

int64_t shared_divisor(const Expr& value) {
  int64_t divisor = 0;
  for (const Expr& term : terms(value))
    if (!term.is_constant()) divisor = std::gcd(divisor, monomial(term).coefficient);
  return divisor;
}

int64_t constant_term(const Expr& value) {
  return terms(value).back().as_constant().value_or(0);
}

// `a // d + k >= 0` says that `a + k*d >= 0`, and `k - a // d >= 0` that `k*d + d - 1 - a >= 0`. The value of
// the equivalent relation; nothing if the value is no quotient by a positive number.
std::optional<Expr> without_quotient(const Expr& value) {
  const std::span<const Expr> list = terms(value);
  const int64_t constant = constant_term(value);
  if (list.size() != 1 && !(list.size() == 2 && list[1].is_constant())) return std::nullopt;
  const Monomial m = monomial(list[0]);
  if (m.factors.size() != 1 || m.factors[0].kind() != Kind::FloorDiv || std::abs(m.coefficient) != 1)
    return std::nullopt;
  const Expr& dividend = m.factors[0].operands()[0];
  const auto divisor = m.factors[0].operands()[1].as_constant();
  constexpr int64_t kLargest = int64_t{1} << 30;  // their product is a number of an expression
  if (!divisor || *divisor < 1 || *divisor > kLargest || std::abs(constant) > kLargest) return std::nullopt;
  const Expr least = constant * *divisor;
  return m.coefficient == 1 ? dividend + least : least + (*divisor - 1) - dividend;
}

Expr canonical(RelationKind kind, const Expr& value) {
  if (value.is_constant()) {
    if (kind == RelationKind::NonNegative) return Expr(value.constant() >= 0 ? 0 : -1);
    return Expr(value.constant() == 0 ? 0 : 1);
  }
  const int64_t divisor = shared_divisor(value);
  if (kind == RelationKind::NonNegative) {
    const Expr reduced = divisor > 1 ? divided(value, divisor) : value;
    const auto simpler = without_quotient(reduced);
    return simpler ? canonical(kind, *simpler) : reduced;
  }
  if (constant_term(value) % divisor != 0) return Expr(1);
  const bool is_negative = monomial(terms(value)[0]).coefficient < 0;
  return divisor > 1 || is_negative ? divided(value, is_negative ? -divisor : divisor) : value;
}

}  // namespace

Relation::Relation(RelationKind kind, const Expr& value) : kind_(kind), value_(canonical(kind, value)) {}

bool holds(RelationKind kind, int64_t value) {
  switch (kind) {
    case RelationKind::Zero:
      return value == 0;
    case RelationKind::NonZero:
      return value != 0;
    case RelationKind::NonNegative:
      return value >= 0;
  }
  return false;
}

std::optional<bool> Relation::constant() const {
  const Range range = value_.range();
  if (kind_ == RelationKind::NonNegative) {
    if (range.low >= 0) return true;
    if (range.high < 0) return false;
    if (known_nonnegative(value_)) return true;
    if (known_nonnegative(-value_ - 1)) return false;
    return std::nullopt;
  }
  if (range.low > 0 || range.high < 0) return kind_ == RelationKind::NonZero;
  if (range == Range{0, 0}) return kind_ == RelationKind::Zero;
  return std::nullopt;
}

Relation operator!(const Relation& relation) {
  switch (relation.kind()) {
    case RelationKind::Zero:
      return {RelationKind::NonZero, relation.value()};
    case RelationKind::NonZero:
      return {RelationKind::Zero, relation.value()};
    default:
      return {RelationKind::NonNegative, -relation.value() - 1};
  }
}

Comparands comparands(const Relation& relation) {
  std::vector<Expr> positive;
  std::vector<Expr> negative;
  int64_t constant = 0;
  for (const Expr& term : terms(relation.value())) {
    const Monomial m = monomial(term);
    if (m.factors.empty())
      constant = m.coefficient;
    else if (m.coefficient > 0)
      positive.push_back(term);
    else
      negative.push_back(-term);
  }
  Expr more = sum_of(std::move(positive));
  Expr less = sum_of(std::move(negative));
  if (relation.kind() != RelationKind::NonNegative) {
    const Comparison comparison =
        relation.kind() == RelationKind::Zero ? Comparison::Equal : Comparison::NotEqual;
    // a - b - 2 == 0 is a == b + 2, and a + 2 == 0 is a == -2.
    if (constant > 0 && !less.is_constant()) return {more + constant, comparison, less};
    return {more, comparison, less - constant};
  }
  if (constant == -1 && !less.is_constant() && !more.is_constant()) return {less, Comparison::Less, more};
  if (less.is_constant()) return {Expr(-constant), Comparison::LessEqual, more};
  if (constant >= 0 || more.is_constant()) return {less, Comparison::LessEqual, more + constant};
  return {less - constant, Comparison::LessEqual, more};
}

}  // namespace oxy::sym
