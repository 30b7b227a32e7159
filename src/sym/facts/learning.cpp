// Facts: what a new one says of variables.
#include <algorithm>
#include <numeric>

#include "sym/facts/facts.h"
#include "sym/facts/reduced.h"
#include "sym/node.h"

namespace oxy::sym {

namespace {

constexpr int kMaxRounds = 8;  // x < y and y < x would narrow ranges for ever

// e as `coefficient * variable + constant`.
struct Line {
  int64_t variable;
  int64_t coefficient;
  int64_t constant;
};
std::optional<Line> as_line(const Expr& e) {
  const std::span<const Expr> list = terms(e);
  const bool has_constant = list.size() == 2 && list[1].is_constant();
  if (list.size() != 1 && !has_constant) return std::nullopt;
  const Monomial m = monomial(list[0]);
  if (m.factors.size() != 1 || m.factors[0].kind() != Kind::Variable) return std::nullopt;
  return Line{m.factors[0].variable_id(), m.coefficient, has_constant ? list[1].constant() : 0};
}

int64_t inverse(int64_t a, int64_t n) {  // a and n have no common divisor, n > 1
  int64_t x = 0;
  for (int64_t r = n, new_r = floor_modulo(a, n), new_x = 1; new_r != 0;) {
    const int64_t quotient = r / new_r;
    r = std::exchange(new_r, r - quotient * new_r);
    x = std::exchange(new_x, x - quotient * new_x);
  }
  return floor_modulo(x, n);
}

// The terms of e that are not constant, and the constant.
std::pair<Expr, int64_t> without_constant(const Expr& e) {
  const int64_t constant = terms(e).back().as_constant().value_or(0);
  return {e - constant, constant};
}

}  // namespace

void Facts::declare(const Expr& variable, Availability availability, bool is_size) {
  variables_.declare(variable, availability, is_size);
}

bool Facts::add(const Condition& condition) {
  for (const Expr& v : variables(condition))
    if (!variables_.is_declared(v.variable_id())) declare(v);
  if (condition.kind() == ConditionKind::All)
    for (const Condition& part : condition.parts()) facts_.push_back({part});
  else
    facts_.push_back({condition});
  if (condition == Condition(false)) is_contradictory_ = true;
  settle();
  return !is_contradictory();
}

void Facts::settle() {
  for (int round = 0; round < kMaxRounds; ++round) {
    bool is_new = false;
    for (size_t i = 0; i < facts_.size() && !is_contradictory(); ++i) {  // grows meanwhile
      if (facts_[i].is_absorbed) continue;
      Fact fact = facts_[i];
      is_new |= learn(fact);
      facts_[i].is_absorbed = fact.is_absorbed;
      for (const VariableFacts::Replaced& old : variables_.take_replaced()) pass_on(old);
    }
    if (!is_new || is_contradictory()) break;
  }
  std::erase_if(facts_, [](const Fact& fact) { return fact.is_absorbed; });
  collect_inequalities();
}

void Facts::pass_on(const VariableFacts::Replaced& old) {
  try {
    if (old.range.low > -kMaxInt) facts_.push_back({less_equal(old.range.low, old.value)});
    if (old.range.high < kMaxInt) facts_.push_back({less_equal(old.value, old.range.high)});
    if (old.congruence.modulus > 1)
      facts_.push_back({equal(mod(old.value, old.congruence.modulus), old.congruence.residue)});
  } catch (const ArithmeticError&) {  // less is known then
  }
}

bool Facts::learn(Fact& fact) {
  try {
    const Condition form = proof_form(fact.condition, Assume::Nothing);
    return learn(reduced(form), fact.is_absorbed);
  } catch (const ArithmeticError&) {
    return false;  // it stays a fact that nothing follows from
  }
}

bool Facts::learn(const Condition& form, bool& is_absorbed) {
  if (const std::optional<bool> value = form.constant()) {
    is_absorbed = true;
    is_contradictory_ |= !*value;
    return false;
  }
  if (form.kind() == ConditionKind::All) {
    // One part: what it says may change how the others are written.
    for (const Condition& part : form.parts()) {
      bool is_part_absorbed = false;
      if (learn(part, is_part_absorbed)) return true;
    }
    return false;
  }
  if (form.kind() == ConditionKind::Any) return false;
  const Relation& relation = form.relation();
  switch (relation.kind()) {
    case RelationKind::Zero:
      return learn_zero(relation.value(), is_absorbed);
    case RelationKind::NonZero:
      return learn_nonzero(relation.value(), is_absorbed);
    default:
      return learn_nonnegative(relation.value(), is_absorbed);
  }
}

// A variable of coefficient 1 or -1 is replaced by the rest: one whose value comes late if there is one, the
// latest declared of several.
bool Facts::solve(const Expr& value) {
  struct Solution {
    int64_t variable;
    Expr value;
    bool is_late;
  };
  std::optional<Solution> best;
  for (const Expr& v : variables(value)) {
    const auto linear = linear_in(value, v.variable_id());
    if (!linear || !linear->first.is_constant() || std::abs(linear->first.constant()) != 1) continue;
    const auto is_late = [this](int64_t id) { return variables_.is_late(variables_.variable_of(id)); };
    const Expr rest = linear->first.constant() == 1 ? -linear->second : linear->second;
    const bool is_this_late = is_late(v.variable_id());
    const bool needs_late =
        std::ranges::any_of(variables(rest), [&](const Expr& other) { return is_late(other.variable_id()); });
    if (needs_late && !is_this_late) continue;
    const auto order = [this](const Solution& s) {
      return std::pair(s.is_late, variables_.variable_of(s.variable));
    };
    Solution found{v.variable_id(), rest, is_this_late};
    if (!best || order(found) > order(*best)) best = std::move(found);
  }
  if (!best) return false;
  variables_.replace(best->variable, best->value);
  return true;
}

bool Facts::learn_zero(const Expr& value, bool& is_absorbed) {
  if (solve(value)) {
    is_absorbed = true;
    return true;
  }
  const auto [rest, constant] = without_constant(value);
  const Monomial m = monomial(rest);
  if (rest.kind() == Kind::Sum || m.factors.size() != 1) return false;
  if (m.factors[0].kind() == Kind::FloorDiv)
    return learn_quotient(m.factors[0], -constant / m.coefficient, is_absorbed);
  // (c*x + d) % n == r
  if (m.factors[0].kind() != Kind::Mod) return false;
  const auto line = as_line(m.factors[0].operands()[0]);
  const auto n = m.factors[0].operands()[1].as_constant();
  if (!line || !n || *n < 2 || *n > (int64_t{1} << 31)) return false;
  const int64_t remainder = -constant / m.coefficient;  // divides: the relation is canonical
  const int64_t shared = std::gcd(line->coefficient, *n);
  const int64_t wanted = floor_modulo(remainder - line->constant, *n);
  if (wanted % shared != 0) {
    is_contradictory_ = true;
    return false;
  }
  is_absorbed = true;
  const int64_t modulus = *n / shared;
  if (modulus == 1) return false;
  const int64_t factor = inverse(line->coefficient / shared, modulus);
  const int64_t residue = static_cast<int64_t>(static_cast<__int128>(wanted / shared) * factor % modulus);
  is_absorbed = variables_.set_remainder(line->variable, {modulus, residue});
  return is_absorbed;
}

// e // n == q: e is at least n*q, and less than n*q + n.
bool Facts::learn_quotient(const Expr& division, int64_t quotient, bool& is_absorbed) {
  const std::optional<int64_t> n = division.operands()[1].as_constant();
  if (!n || *n < 2) return false;
  const Expr above = division.operands()[0] - Expr(*n) * Expr(quotient);
  bool has_low = false, has_high = false;
  bool is_new = learn_nonnegative(Relation(RelationKind::NonNegative, above).value(), has_low);
  is_new |= learn_nonnegative(Relation(RelationKind::NonNegative, *n - 1 - above).value(), has_high);
  is_absorbed = has_low && has_high;
  return is_new;
}

bool Facts::learn_nonzero(const Expr& value, bool& is_absorbed) {
  // `x % 2 != 0`, likewise.
  const Range all = value.range();
  if (all == Range{0, 1} || all == Range{-1, 0})
    return learn_zero(Relation(RelationKind::Zero, value - (all.low + all.high)).value(), is_absorbed);
  const auto line = as_line(value);
  if (!line) return false;
  check(line->coefficient == 1, "a relation is not in canonical form");
  const int64_t excluded = -line->constant;
  const Range range = variables(value)[0].range();
  if (excluded == range.low) is_absorbed = variables_.narrow(line->variable, {excluded + 1, kMaxInt});
  if (excluded == range.high) is_absorbed = variables_.narrow(line->variable, {kMinInt, excluded - 1});
  return is_absorbed;
}

bool Facts::learn_nonnegative(const Expr& value, bool& is_absorbed) {
  // `1 <= x % 2`: the only number that is left.
  if (value.range().high == 0) return learn_zero(Relation(RelationKind::Zero, value).value(), is_absorbed);
  for (const Expr& term : terms(value)) {
    const Monomial m = monomial(term);
    if (m.factors.size() != 1 || m.factors[0].kind() != Kind::Variable) continue;
    const int64_t id = m.factors[0].variable_id();
    const auto linear = linear_in(value, id);
    if (!linear || !linear->first.is_constant()) continue;
    // c*x >= -rest, of which the least value is that of the greatest rest.
    const int64_t greatest = linear->second.range().high;
    if (greatest >= kMaxInt) continue;
    const int64_t c = linear->first.constant();
    Range bound;
    if (c > 0)
      bound.low = -floor_divide(greatest, c);
    else
      bound.high = floor_divide(greatest, -c);
    is_absorbed = linear->second.is_constant();
    if (variables_.narrow(id, bound)) return true;
  }
  return false;
}

void Facts::collect_inequalities() {
  inequalities_.clear();
  zero_.clear();
  nonzero_.clear();
  values_.clear();
  alternatives_.clear();
  const auto collect = [this](const auto& self, const Condition& form) -> void {
    if (form.kind() == ConditionKind::Any && !form.parts().empty()) alternatives_.push_back(form);
    if (form.kind() == ConditionKind::All)
      for (const Condition& part : form.parts()) self(self, part);
    if (form.kind() != ConditionKind::Relation) return;
    const Expr& value = form.relation().value();
    switch (form.relation().kind()) {
      case RelationKind::NonZero:
        nonzero_.push_back(value);
        break;
      case RelationKind::NonNegative: {
        inequalities_.add(value);
        // What is at most its least value has that value: an equation is written so if nothing is below.
        const auto [rest, constant] = without_constant(value);
        const Monomial m = monomial(rest);
        if (rest.kind() == Kind::Sum || m.factors.size() != 1 || m.coefficient != -1) break;
        if (m.factors[0].range().low == constant) values_.push_back({m.factors[0], constant});
        break;
      }
      case RelationKind::Zero: {
        zero_.push_back(value);
        inequalities_.add(value);
        inequalities_.add(-value);
        const auto [rest, constant] = without_constant(value);
        const Monomial m = monomial(rest);
        if (rest.kind() != Kind::Sum && m.factors.size() == 1 && constant % m.coefficient == 0)
          values_.push_back({m.factors[0], -constant / m.coefficient});
        break;
      }
    }
  };
  for (const Fact& fact : facts_) {
    try {
      collect(collect, reduced(proof_form(fact.condition, Assume::Nothing)));
    } catch (const ArithmeticError&) {  // nothing follows from it
    }
  }
}

}  // namespace oxy::sym
