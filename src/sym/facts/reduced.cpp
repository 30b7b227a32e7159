#include "sym/facts/reduced.h"

#include <algorithm>

#include "sym/node.h"

namespace oxy::sym {

namespace {

// The factors that all terms share.
std::vector<Expr> shared_factors(const Expr& e) {
  const Monomial first = monomial(terms(e)[0]);
  std::vector<Expr> shared(first.factors.begin(), first.factors.end());
  for (const Expr& term : terms(e)) {
    const Monomial m = monomial(term);
    std::vector<Expr> available(m.factors.begin(), m.factors.end());
    std::erase_if(shared, [&](const Expr& factor) {
      const auto found = std::ranges::find(available, factor);
      if (found == available.end()) return true;
      available.erase(found);
      return false;
    });
  }
  return shared;
}

Expr without_factors(const Expr& e, const std::vector<Expr>& factors) {
  std::vector<Expr> list;
  for (const Expr& term : terms(e)) {
    const Monomial m = monomial(term);
    std::vector<Expr> rest(m.factors.begin(), m.factors.end());
    for (const Expr& factor : factors) rest.erase(std::ranges::find(rest, factor));
    list.push_back(make_term(m.coefficient, rest));
  }
  return sum_of(std::move(list));
}

// max(a, b) <= c says that a <= c and b <= c, and c <= max(a, b) that one of them is; a minimum is the other
// way round. An `or` that remains says less to a proof than the extremum.
std::optional<Condition> without_bounded_extremum(const Relation& relation) {
  if (relation.kind() != RelationKind::NonNegative) return std::nullopt;
  for (const Expr& term : terms(relation.value())) {
    const Monomial m = monomial(term);
    if (m.factors.size() != 1 || std::abs(m.coefficient) != 1) continue;
    const Expr& extremum = m.factors[0];
    if (extremum.kind() != Kind::Min && extremum.kind() != Kind::Max) continue;
    const Expr rest = relation.value() - term;
    std::vector<Condition> parts;
    for (const Expr& operand : extremum.operands())
      parts.emplace_back(Relation(RelationKind::NonNegative, rest + m.coefficient * operand));
    if ((m.coefficient > 0) == (extremum.kind() == Kind::Min)) return Condition::all(std::move(parts));
    const Condition either = Condition::any(std::move(parts));
    if (either.kind() == ConditionKind::Relation || either.constant()) return either;
  }
  return std::nullopt;
}

// max(a, b) == a says that b <= a, and min(a, b) == a that a <= b.
std::optional<Condition> without_extremum(const Relation& relation) {
  if (relation.kind() == RelationKind::NonNegative) return without_bounded_extremum(relation);
  for (const Expr& term : terms(relation.value())) {
    const Monomial m = monomial(term);
    if (m.factors.size() != 1 || std::abs(m.coefficient) != 1) continue;
    const Expr& extremum = m.factors[0];
    if (extremum.kind() != Kind::Min && extremum.kind() != Kind::Max) continue;
    const Expr other = m.coefficient == 1 ? extremum - relation.value() : relation.value() + extremum;
    for (size_t i = 0; i < 2; ++i) {
      if (!(extremum.operands()[i] == other)) continue;
      const Expr& beside = extremum.operands()[1 - i];
      const Condition is_equal =
          extremum.kind() == Kind::Max ? less_equal(beside, other) : less_equal(other, beside);
      return relation.kind() == RelationKind::Zero ? is_equal : !is_equal;
    }
  }
  return std::nullopt;
}

// 1 <= a*b*e says that 1 <= a, 1 <= b and 1 <= e, if neither a nor b is negative: `n < n*m` is `1 <= n` and
// `2 <= m`.
std::optional<Condition> of_each_factor(const Relation& relation) {
  const std::span<const Expr> list = terms(relation.value());
  if (relation.kind() != RelationKind::NonNegative || list.size() < 2 || !(list.back() == Expr(-1)))
    return std::nullopt;
  const Expr product = relation.value() + 1;
  std::vector<Expr> factors = shared_factors(product);
  std::erase_if(factors, [](const Expr& factor) { return factor.range().low < 0; });
  const Expr rest = without_factors(product, factors);
  if (factors.empty() || (factors.size() == 1 && rest == Expr(1))) return std::nullopt;
  std::vector<Condition> parts;
  for (const Expr& factor : factors) parts.push_back(less_equal(1, factor));
  parts.push_back(less_equal(1, rest));
  return Condition::all(std::move(parts));
}

Condition reduced(const Relation& relation) {
  const Expr& value = relation.value();
  if (value.is_constant()) return relation;
  if (auto found = of_each_factor(relation)) return std::move(*found);
  if (auto found = without_extremum(relation)) return std::move(*found);
  const std::vector<Expr> shared = shared_factors(value);
  const bool is_one_factor = shared.size() == 1 && terms(value).size() == 1;
  if (shared.empty() || is_one_factor) return relation;
  const Expr rest = without_factors(value, shared);
  const RelationKind kind = relation.kind();
  std::vector<Condition> parts;
  bool is_negative = false;
  for (const Expr& factor : shared) {
    const Range range = factor.range();
    if (kind != RelationKind::NonNegative) {
      parts.emplace_back(Relation(kind, factor));
      continue;
    }
    if (range.low < 0 && range.high > 0) return relation;
    is_negative ^= range.low < 0;
    parts.emplace_back(Relation(RelationKind::Zero, factor));
  }
  parts.emplace_back(Relation(kind, is_negative ? -rest : rest));
  return kind == RelationKind::NonZero ? Condition::all(std::move(parts)) : Condition::any(std::move(parts));
}

}  // namespace

Condition reduced(const Condition& condition) {
  if (condition.kind() == ConditionKind::Relation) {
    const Condition once = reduced(condition.relation());
    return once == condition ? once : reduced(once);
  }
  std::vector<Condition> parts;
  for (const Condition& part : condition.parts()) parts.push_back(reduced(part));
  return condition.kind() == ConditionKind::All ? Condition::all(std::move(parts))
                                                : Condition::any(std::move(parts));
}

}  // namespace oxy::sym
