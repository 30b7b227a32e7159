// Facts: what follows from them.
#include <algorithm>

#include "sym/facts/facts.h"
#include "sym/facts/node_count.h"
#include "sym/facts/reduced.h"
#include "sym/node.h"

namespace oxy::sym {

namespace {

bool has_divisions(const Expr& e) {
  if (e.kind() == Kind::FloorDiv || e.kind() == Kind::Mod || e.kind() == Kind::Min || e.kind() == Kind::Max)
    return true;
  return std::ranges::any_of(e.operands(), has_divisions);
}

}  // namespace

// Quotients, remainders, minima and maxima that the facts decide, from the inside to the outside.
Expr Facts::rewritten(const Expr& form) const {
  if (!has_divisions(form) || (values_.empty() && inequalities_.empty())) return form;
  std::vector<Expr> operands;
  for (const Expr& operand : form.operands()) operands.push_back(rewritten(operand));
  const auto is_less_equal = [this](const Expr& a, const Expr& b) {
    return inequalities_.prove_nonnegative(b - a);
  };
  const auto is_below = [&](const Expr& a, const Expr& b) {
    return is_less_equal(0, a) && is_less_equal(a + 1, b);
  };
  Expr result = form;
  switch (form.kind()) {
    case Kind::Sum: {
      std::vector<Expr> list;
      for (const Expr& operand : operands)
        for (const Expr& term : terms(operand)) list.push_back(term);
      result = sum_of(std::move(list));
      break;
    }
    case Kind::Product:
      result = product(operands);
      break;
    case Kind::FloorDiv:
      result = is_below(operands[0], operands[1]) ? Expr(0) : floordiv(operands[0], operands[1]);
      break;
    case Kind::Mod:
      result = is_below(operands[0], operands[1]) ? operands[0] : mod(operands[0], operands[1]);
      break;
    case Kind::Min:
    case Kind::Max: {
      const bool is_min = form.kind() == Kind::Min;
      if (is_less_equal(operands[0], operands[1]))
        result = operands[is_min ? 0 : 1];
      else if (is_less_equal(operands[1], operands[0]))
        result = operands[is_min ? 1 : 0];
      else
        result = is_min ? min(operands[0], operands[1]) : max(operands[0], operands[1]);
      break;
    }
    default:
      break;
  }
  for (const KnownValue& known : values_)
    if (known.expression == result) return Expr(known.value);
  return result;
}

Expr Facts::simplify(const Expr& e) const {
  if (e.is_constant()) return e;
  try {
    const Expr plain = variables_.replaced(e);
    if (plain.is_constant() || !has_divisions(plain)) return plain;
    Expr proved = variables_.from_proof_form(rewritten(variables_.proof_form(e)));
    return node_count(proved) <= node_count(plain) ? proved : plain;
  } catch (const ArithmeticError&) {
    return e;
  }
}

Condition Facts::simplify(const Condition& condition) const {
  try {
    return map(condition, [this](const Expr& e) { return simplify(e); });
  } catch (const ArithmeticError&) {
    return condition;
  }
}

Condition Facts::proof_form(const Condition& condition, Assume assume) const {
  return map(condition, [&](const Expr& e) {
    return assume == Assume::Nothing ? variables_.proof_form(e) : variables_.proof_form_of_large_sizes(e);
  });
}

Answer Facts::answer(const Condition& condition, Assume assume) const {
  if (const std::optional<bool> value = condition.constant()) return answer_of(*value);
  try {
    const Condition form =
        reduced(map(proof_form(condition, assume), [this](const Expr& e) { return rewritten(e); }));
    return answer_proof_form(form);
  } catch (const ArithmeticError&) {
    return Answer::Unknown;
  }
}

Answer Facts::answer_proof_form(const Condition& form) const {
  if (const std::optional<bool> value = form.constant()) return answer_of(*value);
  for (const Condition& known : alternatives_) {
    if (known == form) return Answer::True;
    if (known == !form) return Answer::False;
  }
  if (form.kind() == ConditionKind::Relation) return answer(form.relation());
  const Answer decisive = answer_of(form.kind() == ConditionKind::Any);
  bool is_unknown = false;
  for (const Condition& part : form.parts()) {
    const Answer answer = answer_proof_form(part);
    if (answer == decisive) return decisive;
    is_unknown |= answer == Answer::Unknown;
  }
  return is_unknown ? Answer::Unknown : !decisive;
}

Answer Facts::answer(const Relation& relation) const {
  const Expr& value = relation.value();
  const auto follows = [this](const Expr& e) { return inequalities_.prove_nonnegative(e); };
  if (relation.kind() == RelationKind::NonNegative) {
    if (follows(value)) return Answer::True;
    return follows(-value - 1) ? Answer::False : Answer::Unknown;
  }
  const Answer is_zero = [&] {
    if (std::ranges::find(zero_, value) != zero_.end()) return Answer::True;
    if (std::ranges::find(nonzero_, value) != nonzero_.end()) return Answer::False;
    if (follows(value - 1) || follows(-value - 1)) return Answer::False;
    return follows(value) && follows(-value) ? Answer::True : Answer::Unknown;
  }();
  return relation.kind() == RelationKind::Zero ? is_zero : !is_zero;
}

}  // namespace oxy::sym
