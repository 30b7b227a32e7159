#include "sym/relations/condition.h"

#include <algorithm>

#include "base/error.h"

namespace oxy::sym {

Condition::Condition(bool value) : kind_(value ? ConditionKind::All : ConditionKind::Any) {}

Condition::Condition(const Relation& relation) : Condition(true) {
  if (const std::optional<bool> value = relation.constant()) {
    kind_ = *value ? ConditionKind::All : ConditionKind::Any;
  } else {
    kind_ = ConditionKind::Relation;
    relation_ = relation;
  }
}

Condition::Condition(ConditionKind kind, std::vector<Condition> parts)
    : kind_(kind), parts_(std::move(parts)) {}

namespace {

// The parts of `kind` without constants that change nothing and without repetition.
std::vector<Condition> flattened(ConditionKind kind, std::vector<Condition> parts) {
  std::vector<Condition> result;
  const auto add = [&](const Condition& part) {
    if (std::ranges::find(result, part) == result.end()) result.push_back(part);
  };
  for (const Condition& part : parts) {
    if (part.kind() != kind)
      add(part);
    else
      for (const Condition& inner : part.parts()) add(inner);
  }
  return result;
}

}  // namespace

Condition Condition::all(std::vector<Condition> parts) {
  parts = flattened(ConditionKind::All, std::move(parts));
  if (std::ranges::find(parts, Condition(false)) != parts.end()) return false;
  if (parts.size() == 1) return parts[0];
  return {ConditionKind::All, std::move(parts)};
}

Condition Condition::any(std::vector<Condition> parts) {
  parts = flattened(ConditionKind::Any, std::move(parts));
  if (std::ranges::find(parts, Condition(true)) != parts.end()) return true;
  if (parts.size() == 1) return parts[0];
  return {ConditionKind::Any, std::move(parts)};
}

const Relation& Condition::relation() const {
  check(relation_.has_value(), "the condition is not a relation");
  return *relation_;
}

std::optional<bool> Condition::constant() const {
  if (kind_ == ConditionKind::Relation || !parts_.empty()) return std::nullopt;
  return kind_ == ConditionKind::All;
}

bool operator==(const Condition& a, const Condition& b) {
  return a.kind_ == b.kind_ && a.relation_ == b.relation_ && a.parts_ == b.parts_;
}

Condition operator!(const Condition& condition) {
  if (condition.kind() == ConditionKind::Relation) return !condition.relation();
  std::vector<Condition> parts;
  for (const Condition& part : condition.parts()) parts.push_back(!part);
  return condition.kind() == ConditionKind::All ? Condition::any(std::move(parts))
                                                : Condition::all(std::move(parts));
}

Condition equal(const Expr& a, const Expr& b) {
  return Relation(RelationKind::Zero, a - b);
}
Condition not_equal(const Expr& a, const Expr& b) {
  return Relation(RelationKind::NonZero, a - b);
}
Condition less(const Expr& a, const Expr& b) {
  return Relation(RelationKind::NonNegative, b - a - 1);
}
Condition less_equal(const Expr& a, const Expr& b) {
  return Relation(RelationKind::NonNegative, b - a);
}
Condition divisible(const Expr& a, const Expr& b) {
  return Relation(RelationKind::Zero, mod(a, b));
}

namespace {

void collect(const Condition& condition, std::vector<Expr>& found) {
  if (condition.kind() == ConditionKind::Relation) {
    const std::vector<Expr> list = variables(condition.relation().value());
    found.insert(found.end(), list.begin(), list.end());
  }
  for (const Condition& part : condition.parts()) collect(part, found);
}

}  // namespace

std::vector<Expr> variables(const Condition& condition) {
  std::vector<Expr> found;
  collect(condition, found);
  std::ranges::sort(found, {}, &Expr::variable_id);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

Condition map(const Condition& condition, const std::function<Expr(const Expr&)>& expression) {
  if (condition.kind() == ConditionKind::Relation) {
    const Relation& relation = condition.relation();
    return Relation(relation.kind(), expression(relation.value()));
  }
  std::vector<Condition> parts;
  for (const Condition& part : condition.parts()) parts.push_back(map(part, expression));
  return condition.kind() == ConditionKind::All ? Condition::all(std::move(parts))
                                                : Condition::any(std::move(parts));
}

bool evaluate(const Condition& condition, const std::function<std::optional<int64_t>(int64_t)>& value) {
  const auto is_true = [&](const Condition& part) { return evaluate(part, value); };
  switch (condition.kind()) {
    case ConditionKind::Relation:
      return holds(condition.relation().kind(), evaluate(condition.relation().value(), value));
    case ConditionKind::All:
      return std::ranges::all_of(condition.parts(), is_true);
    case ConditionKind::Any:
      return std::ranges::any_of(condition.parts(), is_true);
  }
  return false;
}

}  // namespace oxy::sym
