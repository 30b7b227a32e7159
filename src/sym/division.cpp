// Simplification of floordiv, mod, min and max: what divides comes out, what the ranges settle disappears.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "sym/node.h"

namespace oxy::sym {

namespace {

bool bounded(Range r) {
  return r.low > -kMaxInt && r.high < kMaxInt;
}

Expr quotient_node(const Expr& a, const Expr& b) {
  return make_node(Kind::FloorDiv, {a, b}, {}, 0, {});
}

// term / divisor if the monomial `divisor` divides it.
std::optional<Expr> divide_term(const Expr& term, const Monomial& divisor) {
  Monomial m = monomial(term);
  if (m.coefficient % divisor.coefficient != 0) return std::nullopt;
  std::vector<Expr> left(m.factors.begin(), m.factors.end());
  for (const Expr& factor : divisor.factors) {
    auto found = std::ranges::find(left, factor);
    if (found == left.end()) return std::nullopt;
    left.erase(found);
  }
  return make_term(m.coefficient / divisor.coefficient, left);
}

// The term of the highest degree; of several, the last.
const Expr& leading_term(const Expr& e) {
  const Expr* best = &terms(e)[0];
  for (const Expr& term : terms(e))
    if (monomial(term).factors.size() >= monomial(*best).factors.size() && !term.is_constant()) best = &term;
  return *best;
}

// a / b if b, a sum, divides a exactly: polynomial long division by b's leading term.
std::optional<Expr> divide_exactly(const Expr& a, const Expr& b) {
  Monomial lead = monomial(leading_term(b));
  Expr rest = a;
  Expr quotient = 0;
  for (size_t steps = terms(a).size(); steps > 0; --steps) {
    auto step = divide_term(leading_term(rest), lead);
    if (!step) return std::nullopt;
    quotient = quotient + *step;
    rest = rest - *step * b;
    if (rest == Expr(0)) return quotient;
  }
  return std::nullopt;
}

struct Division {
  Expr quotient;
  Expr remainder;
};

// a = quotient * b + remainder, by the terms of a that b divides; the constant term leaves its own remainder.
Division split(const Expr& a, const Expr& b) {
  Monomial divisor = monomial(b);
  std::vector<Expr> whole;
  std::vector<Expr> rest;
  for (const Expr& term : terms(a)) {
    if (auto c = term.as_constant(); c && divisor.factors.empty()) {
      int64_t q = floor_divide(*c, divisor.coefficient);
      int64_t r = floor_modulo(*c, divisor.coefficient);
      if (q != 0) whole.emplace_back(q);
      if (r != 0) rest.emplace_back(r);
    } else if (auto q = divide_term(term, divisor)) {
      whole.push_back(std::move(*q));
    } else {
      rest.push_back(term);
    }
  }
  return {sum_of(std::move(whole)), make_sum(std::move(rest))};
}

// The symbolic factors that every term of a and the monomial b share, as a monomial of coefficient 1.
Expr common_factor(const Expr& a, const Expr& b) {
  Monomial m = monomial(b);
  std::vector<Expr> shared(m.factors.begin(), m.factors.end());
  for (const Expr& term : terms(a)) {
    Monomial t = monomial(term);
    std::vector<Expr> available(t.factors.begin(), t.factors.end());
    std::erase_if(shared, [&](const Expr& factor) {
      auto found = std::ranges::find(available, factor);
      if (found == available.end()) return true;
      available.erase(found);
      return false;
    });
  }
  return make_term(1, shared);
}

int64_t common_divisor(const Expr& a, int64_t start) {
  for (const Expr& term : terms(a)) start = std::gcd(start, monomial(term).coefficient);
  return start;
}

Expr divided_by(const Expr& a, int64_t divisor) {  // every coefficient is a multiple
  std::vector<Expr> list;
  for (const Expr& term : terms(a)) {
    Monomial m = monomial(term);
    list.push_back(make_term(m.coefficient / divisor, m.factors));
  }
  return make_sum(std::move(list));
}

// a = multiple * g + small with 0 <= small < g, g a divisor of n: the largest such g above 1.
struct Coarsened {
  int64_t g = 0;
  Expr multiple;
  Expr small;
};

std::optional<Coarsened> coarsen(const Expr& a, int64_t n) {
  std::vector<int64_t> candidates;
  for (const Expr& term : terms(a))
    if (!term.is_constant()) {
      int64_t g = std::gcd(monomial(term).coefficient, n);
      if (g > 1 && std::ranges::find(candidates, g) == candidates.end()) candidates.push_back(g);
    }
  std::ranges::sort(candidates, std::greater<>());
  for (int64_t g : candidates) {
    std::vector<Expr> multiple;
    std::vector<Expr> small;
    for (const Expr& term : terms(a)) {
      Monomial m = monomial(term);
      if (m.factors.empty()) {
        int64_t q = floor_divide(m.coefficient, g);
        int64_t r = floor_modulo(m.coefficient, g);
        if (q != 0) multiple.emplace_back(q);
        if (r != 0) small.emplace_back(r);
      } else if (m.coefficient % g == 0) {
        multiple.push_back(make_term(m.coefficient / g, m.factors));
      } else {
        small.push_back(term);
      }
    }
    Expr rest = make_sum(std::move(small));
    Range r = rest.range();
    if (r.low >= 0 && r.high < g) return Coarsened{g, sum_of(std::move(multiple)), rest};
  }
  return std::nullopt;
}

// a // n for a whose terms n does not divide, n > 1.
Expr floordiv_rest(const Expr& a, int64_t n) {
  Range r = a.range();
  if (bounded(r) && floor_divide(r.low, n) == floor_divide(r.high, n)) return Expr(floor_divide(r.low, n));
  if (auto c = coarsen(a, n)) return floordiv(c->multiple, Expr(n / c->g));
  int64_t g = n;
  int64_t constant = 0;
  for (const Expr& term : terms(a)) {
    Monomial m = monomial(term);
    if (m.factors.empty())
      constant = m.coefficient;
    else
      g = std::gcd(g, m.coefficient);
  }
  if (g > 1) return floordiv(divided_by(a - constant, g) + floor_divide(constant, g), Expr(n / g));
  // (x // m + c) // n = (x + c*m) // (m*n)
  Expr inner = a - constant;
  if (inner.kind() == Kind::FloorDiv)
    if (auto m = inner.operands()[1].as_constant(); m && *m > 0)
      return floordiv(inner.operands()[0] + checked_multiply(constant, *m), Expr(checked_multiply(*m, n)));
  // (x % (n*k)) // n = (x // n) % k
  if (a.kind() == Kind::Mod)
    if (auto m = a.operands()[1].as_constant(); m && *m > 0 && *m % n == 0)
      return mod(floordiv(a.operands()[0], Expr(n)), Expr(*m / n));
  return quotient_node(a, Expr(n));
}

Expr floordiv_symbolic(const Expr& a, const Expr& b) {
  if (b.kind() == Kind::Sum) {
    if (auto exact = divide_exactly(a, b)) return *exact;
    if (int64_t g = common_divisor(a, common_divisor(b, 0)); g > 1)
      return floordiv(divided_by(a, g), divided_by(b, g));
  } else {
    Division d = split(a, b);
    if (!(d.quotient == Expr(0))) return d.quotient + floordiv(d.remainder, b);
    if (Expr shared = common_factor(a, b); !(shared == Expr(1)))
      return floordiv(split(a, shared).quotient, split(b, shared).quotient);
    if (int64_t g = common_divisor(a, monomial(b).coefficient); g > 1)
      return floordiv(divided_by(a, g), divided_by(b, g));
  }
  if (a.range().low >= 0 && known_less(a, b)) return Expr(0);
  if (a.kind() == Kind::FloorDiv && a.operands()[1].range().low > 0 && b.range().low > 0)
    return floordiv(a.operands()[0], a.operands()[1] * b);
  return quotient_node(a, b);
}

// a % n, n > 1, with no term left that n divides.
Expr mod_rest(const Expr& a, int64_t n) {
  Range r = a.range();
  if (bounded(r) && floor_divide(r.low, n) == floor_divide(r.high, n)) return a - floor_divide(r.low, n) * n;
  if (auto c = coarsen(a, n)) return c->g * mod(c->multiple, Expr(n / c->g)) + c->small;
  if (int64_t g = common_divisor(a, n); g > 1) return g * mod(divided_by(a, g), Expr(n / g));
  return make_node(Kind::Mod, {a, Expr(n)}, {}, 0, {});
}

// An expression equal to a modulo n with smaller coefficients and without inner mods by multiples of n.
Expr reduce(const Expr& a, int64_t n) {
  std::vector<Expr> list;
  for (const Expr& term : terms(a)) {
    Monomial m = monomial(term);
    if (m.factors.empty()) {
      list.emplace_back(floor_modulo(m.coefficient, n));
      continue;
    }
    int64_t coefficient = m.coefficient % n;
    if (coefficient == 0) continue;
    if (m.factors.size() == 1 && m.factors[0].kind() == Kind::Mod) {
      auto inner = m.factors[0].operands()[1].as_constant();
      if (inner && checked_multiply(coefficient, *inner) % n == 0) {
        Expr unwrapped = coefficient * m.factors[0].operands()[0];
        for (const Expr& t : terms(unwrapped)) list.push_back(t);
        continue;
      }
    }
    list.push_back(make_term(coefficient, m.factors));
  }
  return sum_of(std::move(list));
}

Expr mod_symbolic(const Expr& a, const Expr& b) {
  if (b.kind() == Kind::Sum) {
    if (divide_exactly(a, b)) return Expr(0);
  } else {
    Division d = split(a, b);
    if (!(d.quotient == Expr(0))) return mod(d.remainder, b);
    if (Expr shared = common_factor(a, b); !(shared == Expr(1)))
      return shared * mod(split(a, shared).quotient, split(b, shared).quotient);
  }
  if (a.range().low >= 0 && known_less(a, b)) return a;
  if (a.kind() == Kind::Mod && a.operands()[1] == b) return a;
  return make_node(Kind::Mod, {a, b}, {}, 0, {});
}

// min or max of an expression and a constant applied to the same operation with a constant inside.
Expr extremum(const Expr& a, const Expr& b, Kind kind) {
  bool is_min = kind == Kind::Min;
  if (known_less_equal(a, b)) return is_min ? a : b;
  if (known_less_equal(b, a)) return is_min ? b : a;
  const Expr& x = compare(a, b) < 0 ? a : b;
  const Expr& y = compare(a, b) < 0 ? b : a;
  if (x.kind() == kind) {
    for (int i = 0; i < 2; ++i) {
      const Expr& inner = x.operands()[static_cast<size_t>(i)];
      const Expr& other = x.operands()[static_cast<size_t>(1 - i)];
      if (inner == y) return x;
      if (inner.is_constant() && y.is_constant()) return extremum(other, extremum(inner, y, kind), kind);
    }
  }
  return make_node(kind, {x, y}, {}, 0, {});
}

}  // namespace

Expr floordiv(const Expr& a, const Expr& b) {
  if (auto n = b.as_constant()) {
    if (*n == 0) [[unlikely]]
      throw ArithmeticError("a size is divided by zero");
    if (auto c = a.as_constant()) return Expr(floor_divide(*c, *n));
    if (*n < 0) return floordiv(-a, -b);
    if (*n == 1) return a;
    Division d = split(a, b);
    if (d.quotient == Expr(0)) return floordiv_rest(a, *n);
    return d.remainder.is_constant() ? d.quotient : d.quotient + floordiv_rest(d.remainder, *n);
  }
  if (a == Expr(0)) return a;
  return floordiv_symbolic(a, b);
}

Expr mod(const Expr& a, const Expr& b) {
  if (auto n = b.as_constant()) {
    if (*n == 0) [[unlikely]]
      throw ArithmeticError("a size is divided by zero");
    if (auto c = a.as_constant()) return Expr(floor_modulo(*c, *n));
    if (*n < 0) return -mod(-a, -b);
    if (*n == 1) return Expr(0);
    Expr reduced = reduce(a, *n);
    return reduced.is_constant() ? Expr(floor_modulo(reduced.constant(), *n)) : mod_rest(reduced, *n);
  }
  if (a == Expr(0)) return a;
  return mod_symbolic(a, b);
}

Expr ceildiv(const Expr& a, const Expr& b) {
  return -floordiv(-a, b);
}
Expr min(const Expr& a, const Expr& b) {
  return extremum(a, b, Kind::Min);
}
Expr max(const Expr& a, const Expr& b) {
  return extremum(a, b, Kind::Max);
}

}  // namespace oxy::sym
