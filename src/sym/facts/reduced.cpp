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

Condition reduced(const Relation& relation) {
  const Expr& value = relation.value();
  if (value.is_constant()) return relation;
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
  if (condition.kind() == ConditionKind::Relation) return reduced(condition.relation());
  std::vector<Condition> parts;
  for (const Condition& part : condition.parts()) parts.push_back(reduced(part));
  return condition.kind() == ConditionKind::All ? Condition::all(std::move(parts))
                                                : Condition::any(std::move(parts));
}

}  // namespace oxy::sym
