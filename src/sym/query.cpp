// Substitution, evaluation and what can be known for certain.
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "sym/node.h"

namespace oxy::sym {

namespace {

bool contains(const Expr& e, int64_t id) {
  if ((variable_mask(e) & (uint64_t{1} << (static_cast<uint64_t>(id) % 64))) == 0) return false;
  if (e.kind() == Kind::Variable) return e.variable_id() == id;
  return std::ranges::any_of(e.operands(), [id](const Expr& operand) { return contains(operand, id); });
}

void collect(const Expr& e, std::vector<Expr>& out) {
  if (e.kind() == Kind::Variable) out.push_back(e);
  for (const Expr& operand : e.operands()) collect(operand, out);
}

// e with every variable of known limit, where e grows with it, at its largest; nothing if there is none.
std::optional<Expr> largest(const Expr& e) {
  std::vector<Expr> list;
  bool changed = false;
  for (const Expr& term : terms(e)) {
    Monomial m = monomial(term);
    size_t limited = m.factors.size();
    bool grows = m.coefficient > 0;
    for (size_t i = 0; i < m.factors.size(); ++i) {
      grows &= m.factors[i].range().low >= 0;
      if (m.factors[i].kind() == Kind::Variable && Node::of(m.factors[i])->limit) limited = i;
    }
    if (!grows || limited == m.factors.size()) {
      list.push_back(term);
      continue;
    }
    std::vector<Expr> others(m.factors.begin(), m.factors.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(limited));
    Expr replaced = make_term(m.coefficient, others) * (*Node::of(m.factors[limited])->limit - 1);
    for (const Expr& t : terms(replaced)) list.push_back(t);
    changed = true;
  }
  if (!changed) return std::nullopt;
  return sum_of(std::move(list));
}

// An expression that e is not below: x // m is at most x / m, where that takes something away from e.
Expr without_floors_taken_away(const Expr& e) {
  std::vector<Expr> list;
  for (const Expr& term : terms(e)) {
    const Monomial m = monomial(term);
    const bool is_quotient = m.factors.size() == 1 && m.factors[0].kind() == Kind::FloorDiv;
    const auto divisor = is_quotient ? m.factors[0].operands()[1].as_constant() : std::nullopt;
    if (!divisor || *divisor < 1 || m.coefficient >= 0 || m.coefficient % *divisor != 0) {
      list.push_back(term);
      continue;
    }
    const Expr replaced = m.factors[0].operands()[0] * Expr(m.coefficient / *divisor);
    for (const Expr& t : terms(replaced)) list.push_back(t);
  }
  return sum_of(std::move(list));
}

bool is_positive(const Expr& e) {
  return e.range().low > 0 || without_floors_taken_away(e).range().low > 0;
}

// Whether a <= b by how they are made of minima and maxima, whatever their variables are: min(a, c) <= a <=
// max(a, b).
bool is_below(const Expr& a, const Expr& b, int depth = 0) {
  constexpr int kMostDepth = 8;
  if (a == b || a.range().high <= b.range().low) return true;
  if (depth == kMostDepth) return false;
  const auto left = [&](const Expr& operand) { return is_below(operand, b, depth + 1); };
  const auto right = [&](const Expr& operand) { return is_below(a, operand, depth + 1); };
  if (a.kind() == Kind::Max) return std::ranges::all_of(a.operands(), left);
  if (b.kind() == Kind::Min) return std::ranges::all_of(b.operands(), right);
  return (a.kind() == Kind::Min && std::ranges::any_of(a.operands(), left)) ||
         (b.kind() == Kind::Max && std::ranges::any_of(b.operands(), right));
}

// The operand that a minimum or maximum is, if the others are known to be beyond it.
std::optional<Expr> operand_that_counts(const Expr& e, int depth);

// Whether each term that is taken away is below another one that is added, and the rest is not negative.
bool is_nonnegative(const Expr& value, int depth) {
  constexpr int kMostDepth = 3;
  if (value.range().low >= 0) return true;
  std::vector<Expr> added, taken;
  Expr rest = 0;
  bool has_bounds = false;
  const auto is_bound = [](const Expr& e) { return e.kind() == Kind::Min || e.kind() == Kind::Max; };
  for (const Expr& term : terms(value)) {
    const Monomial m = monomial(term);
    const bool is_atom = m.factors.size() == 1 && std::abs(m.coefficient) == 1;
    if (!is_atom) {
      rest = rest + term;
      continue;
    }
    has_bounds = has_bounds || is_bound(m.factors[0]);
    (m.coefficient > 0 ? added : taken).push_back(m.factors[0]);
  }
  if (!has_bounds) return false;
  std::vector<Expr> left = added;
  const bool are_all_below = std::ranges::all_of(taken, [&](const Expr& term) {
    const auto above = std::ranges::find_if(left, [&](const Expr& other) { return is_below(term, other); });
    if (above == left.end()) return false;
    left.erase(above);
    return true;
  });
  if (are_all_below) {
    Expr remaining = rest;
    for (const Expr& term : left) remaining = remaining + term;
    if (remaining.range().low >= 0) return true;
  }
  if (depth == kMostDepth) return false;
  for (const std::vector<Expr>* list : {&added, &taken})
    for (const Expr& term : *list) {
      const auto simpler = is_bound(term) ? operand_that_counts(term, depth + 1) : std::nullopt;
      if (simpler)
        return is_nonnegative(list == &added ? value - term + *simpler : value + term - *simpler, depth + 1);
    }
  return false;
}

std::optional<Expr> operand_that_counts(const Expr& e, int depth) {
  const bool is_min = e.kind() == Kind::Min;
  for (const Expr& operand : e.operands()) {
    const bool counts = std::ranges::all_of(e.operands(), [&](const Expr& other) {
      return &other == &operand || is_nonnegative(is_min ? other - operand : operand - other, depth);
    });
    if (counts) return operand;
  }
  return std::nullopt;
}

}  // namespace

Expr substitute(const Expr& e, const std::function<std::optional<Expr>(int64_t)>& replacement) {
  if (e.is_constant()) return e;
  if (e.kind() == Kind::Variable) {
    auto value = replacement(e.variable_id());
    if (value) return std::move(*value);
    return e;
  }
  std::vector<Expr> operands;
  operands.reserve(e.operands().size());
  bool changed = false;
  for (const Expr& operand : e.operands()) {
    operands.push_back(substitute(operand, replacement));
    changed |= !Node::same_bits(operands.back(), operand);
  }
  if (!changed) return e;
  switch (e.kind()) {
    case Kind::Sum: {
      std::vector<Expr> list;
      for (const Expr& operand : operands)
        for (const Expr& term : terms(operand)) list.push_back(term);
      return sum_of(std::move(list));
    }
    case Kind::Product:
      return product(operands);
    case Kind::FloorDiv:
      return floordiv(operands[0], operands[1]);
    case Kind::Mod:
      return mod(operands[0], operands[1]);
    case Kind::Min:
      return min(operands[0], operands[1]);
    case Kind::Max:
      return max(operands[0], operands[1]);
    default:
      throw InternalError("an expression of unknown kind");
  }
}

std::vector<Expr> variables(const Expr& e) {
  std::vector<Expr> found;
  collect(e, found);
  std::ranges::sort(found, [](const Expr& a, const Expr& b) { return a.variable_id() < b.variable_id(); });
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

int64_t evaluate(const Expr& e, const std::function<std::optional<int64_t>(int64_t)>& value) {
  if (auto c = e.as_constant()) return *c;
  if (e.kind() == Kind::Variable) {
    auto found = value(e.variable_id());
    check(found.has_value(), "no value is given for the variable " + e.variable_name());
    return *found;
  }
  std::span<const Expr> operands = e.operands();
  int64_t result = evaluate(operands[0], value);
  for (const Expr& operand : operands.subspan(1)) {
    int64_t other = evaluate(operand, value);
    switch (e.kind()) {
      case Kind::Sum:
        result = checked_add(result, other);
        break;
      case Kind::Product:
        result = checked_multiply(result, other);
        break;
      case Kind::FloorDiv:
        if (other == 0) [[unlikely]]
          throw ArithmeticError("a size is divided by zero");
        result = other == -1 ? checked_multiply(result, -1) : floor_divide(result, other);
        break;
      case Kind::Mod:
        if (other == 0) [[unlikely]]
          throw ArithmeticError("a size is divided by zero");
        result = other == -1 ? 0 : floor_modulo(result, other);
        break;
      case Kind::Min:
        result = std::min(result, other);
        break;
      case Kind::Max:
        result = std::max(result, other);
        break;
      default:
        throw InternalError("an expression of unknown kind");
    }
  }
  return result;
}

std::optional<std::pair<Expr, Expr>> linear_in(const Expr& e, int64_t id) {
  if (!contains(e, id)) return std::pair{Expr(0), e};
  std::vector<Expr> coefficient;
  std::vector<Expr> rest;
  for (const Expr& term : terms(e)) {
    if (!contains(term, id)) {
      rest.push_back(term);
      continue;
    }
    Monomial m = monomial(term);
    std::vector<Expr> others;
    int degree = 0;
    for (const Expr& factor : m.factors) {
      if (factor.kind() == Kind::Variable && factor.variable_id() == id)
        ++degree;
      else if (contains(factor, id))
        return std::nullopt;
      else
        others.push_back(factor);
    }
    if (degree != 1) return std::nullopt;
    coefficient.push_back(make_term(m.coefficient, others));
  }
  // What is left of a sum is in its order.
  return std::pair{sum_of(std::move(coefficient)), make_sum(std::move(rest))};
}

bool known_equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  Range x = a.range();
  Range y = b.range();
  return x.low == x.high && x == y;
}

bool known_less(const Expr& a, const Expr& b) {
  if (a.range().high < b.range().low) return true;
  if (a.range().low >= b.range().high) return false;
  if (a.is_constant() || b.is_constant()) return false;
  if (is_positive(b - a)) return true;
  if (a.kind() == Kind::FloorDiv && a.operands()[1].range().low > 0)
    return known_less(a.operands()[0], b * a.operands()[1]);
  auto bound = largest(a);
  return bound && is_positive(b - *bound);
}

bool known_nonnegative(const Expr& value) {
  return is_nonnegative(value, 0);
}

bool known_less_equal(const Expr& a, const Expr& b) {
  if (a.range().high <= b.range().low || a == b) return true;
  if (a.range().low > b.range().high) return false;
  return !a.is_constant() && !b.is_constant() && (b - a).range().low >= 0;
}

bool known_divisible(const Expr& a, const Expr& b) {
  if (b == Expr(0)) return false;
  return mod(a, b) == Expr(0);
}

}  // namespace oxy::sym
