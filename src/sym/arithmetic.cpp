// Sums and products in canonical form: a sum of terms in order, a term being a coefficient and factors in
// order.
#include <algorithm>

#include "sym/node.h"

namespace oxy::sym {

namespace {

constexpr size_t kMaxDistributedTerms = 256;  // larger products of sums stay products

Expr scaled_term(const Expr& term, int64_t factor) {
  if (auto c = term.as_constant()) return Expr(checked_multiply(*c, factor));
  Monomial m = monomial(term);
  return make_term(checked_multiply(m.coefficient, factor), m.factors);
}

Expr scale(const Expr& e, int64_t factor) {
  if (factor == 0) return Expr(0);
  if (factor == 1) return e;
  std::vector<Expr> scaled;
  for (const Expr& term : terms(e)) scaled.push_back(scaled_term(term, factor));
  return make_sum(std::move(scaled));
}

// The term with its factor number `position` replaced by `replacement`.
Expr replace_factor(const Monomial& m, size_t position, const Expr& replacement) {
  std::vector<Expr> others;
  for (size_t i = 0; i < m.factors.size(); ++i)
    if (i != position) others.push_back(m.factors[i]);
  return make_term(m.coefficient, others) * replacement;
}

// One application of k*c*(x // c) + k*(x % c) = k*x or k*c*(x // c % n) + k*(x % c) = k*(x % (c*n)).
bool recombine_once(std::vector<Expr>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    Monomial m = monomial(list[i]);
    for (size_t position = 0; position < m.factors.size(); ++position) {
      const Expr modulo = m.factors[position];
      if (modulo.kind() != Kind::Mod) continue;
      const Expr& x = modulo.operands()[0];
      const Expr& c = modulo.operands()[1];
      Expr quotient = floordiv(x, c);
      if (quotient.kind() == Kind::Sum || quotient.is_constant()) continue;
      Expr wanted = replace_factor(m, position, c * quotient);
      std::optional<Expr> combined;
      size_t partner = list.size();
      for (size_t j = 0; j < list.size() && !combined; ++j) {
        if (j == i) continue;
        if (list[j] == wanted) {
          combined = replace_factor(m, position, x);
          partner = j;
          break;
        }
        Monomial other = monomial(list[j]);
        for (size_t k = 0; k < other.factors.size(); ++k) {
          const Expr& outer = other.factors[k];
          if (outer.kind() != Kind::Mod || !(outer.operands()[0] == quotient)) continue;
          if (!(replace_factor(other, k, quotient) == wanted)) continue;
          combined = replace_factor(m, position, mod(x, c * outer.operands()[1]));
          partner = j;
          break;
        }
      }
      if (!combined) continue;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::max(i, partner)));
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::min(i, partner)));
      for (const Expr& term : terms(*combined)) list.push_back(term);
      return true;
    }
  }
  return false;
}

bool may_recombine(std::span<const Expr> list) {
  size_t modulos = 0;
  size_t partners = 0;
  for (const Expr& term : list)
    for (const Expr& factor : monomial(term).factors) {
      modulos += factor.kind() == Kind::Mod;
      partners += factor.kind() == Kind::Mod || factor.kind() == Kind::FloorDiv;
    }
  return modulos > 0 && partners > 1;
}

Expr finish_sum(std::vector<Expr> list) {
  if (list.size() > 1 && may_recombine(list) && recombine_once(list)) return sum_of(std::move(list));
  return make_sum(std::move(list));
}

// Adds `term` to the ordered list, merging it with its last element if they differ in the coefficient only.
void append_term(std::vector<Expr>& list, const Expr& term) {
  if (!list.empty() && compare_terms(list.back(), term) == 0) {
    Monomial a = monomial(list.back());
    Monomial b = monomial(term);
    Expr merged = make_term(checked_add(a.coefficient, b.coefficient), b.factors);
    list.pop_back();
    if (!(merged == Expr(0))) list.push_back(std::move(merged));
  } else if (!(term == Expr(0))) {
    list.push_back(term);
  }
}

Expr multiply_terms(const Expr& a, const Expr& b) {
  Monomial x = monomial(a);
  Monomial y = monomial(b);
  std::vector<Expr> factors;
  factors.reserve(x.factors.size() + y.factors.size());
  std::ranges::merge(x.factors, y.factors, std::back_inserter(factors),
                     [](const Expr& p, const Expr& q) { return compare(p, q) < 0; });
  return make_term(checked_multiply(x.coefficient, y.coefficient), factors);
}

}  // namespace

std::span<const Expr> terms(const Expr& e) {
  if (e.kind() == Kind::Sum) return e.operands();
  return {&e, 1};
}

Monomial monomial(const Expr& term) {
  if (auto c = term.as_constant()) return {*c, {}};
  if (term.kind() != Kind::Product) return {1, {&term, 1}};
  std::span<const Expr> factors = term.operands();
  if (auto c = factors[0].as_constant()) return {*c, factors.subspan(1)};
  return {1, factors};
}

Expr make_term(int64_t coefficient, std::span<const Expr> factors) {
  if (coefficient == 0 || factors.empty()) return Expr(coefficient);
  if (coefficient == 1 && factors.size() == 1) return factors[0];
  std::vector<Expr> operands;
  operands.reserve(factors.size() + 1);
  if (coefficient != 1) operands.emplace_back(coefficient);
  operands.insert(operands.end(), factors.begin(), factors.end());
  return make_node(Kind::Product, std::move(operands), {}, 0, {});
}

Expr make_sum(std::vector<Expr> list) {
  if (list.empty()) return Expr(0);
  if (list.size() == 1) return std::move(list[0]);
  return make_node(Kind::Sum, std::move(list), {}, 0, {});
}

std::strong_ordering compare_terms(const Expr& a, const Expr& b) {
  std::span<const Expr> x = monomial(a).factors;
  std::span<const Expr> y = monomial(b).factors;
  if (x.empty() || y.empty()) return x.empty() <=> y.empty();  // a constant term comes last
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (auto order = compare(x[i], y[i]); order != 0) return order;
  return x.size() <=> y.size();
}

Expr sum_of(std::vector<Expr> list) {
  const auto is_before = [](const Expr& a, const Expr& b) { return compare_terms(a, b) < 0; };
  if (!std::ranges::is_sorted(list, is_before)) std::ranges::stable_sort(list, is_before);
  std::vector<Expr> merged;
  merged.reserve(list.size());
  for (const Expr& term : list) append_term(merged, term);
  return finish_sum(std::move(merged));
}

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return Expr(checked_add(a.constant(), b.constant()));
  if (a == Expr(0)) return b;
  if (b == Expr(0)) return a;
  std::span<const Expr> x = terms(a);
  std::span<const Expr> y = terms(b);
  std::vector<Expr> merged;
  merged.reserve(x.size() + y.size());
  size_t i = 0;
  size_t j = 0;
  while (i < x.size() || j < y.size()) {
    bool left = j == y.size() || (i < x.size() && compare_terms(x[i], y[j]) <= 0);
    append_term(merged, left ? x[i++] : y[j++]);
  }
  return finish_sum(std::move(merged));
}

Expr operator-(const Expr& a) {
  return scale(a, -1);
}
Expr operator-(const Expr& a, const Expr& b) {
  return a + scale(b, -1);
}

Expr operator*(const Expr& a, const Expr& b) {
  if (auto c = a.as_constant())
    return b.is_constant() ? Expr(checked_multiply(*c, b.constant())) : scale(b, *c);
  if (auto c = b.as_constant()) return scale(a, *c);
  std::span<const Expr> x = terms(a);
  std::span<const Expr> y = terms(b);
  if (x.size() == 1 && y.size() == 1) return multiply_terms(a, b);
  if (x.size() * y.size() > kMaxDistributedTerms) {
    std::vector<Expr> factors{a, b};
    std::ranges::sort(factors, [](const Expr& p, const Expr& q) { return compare(p, q) < 0; });
    return make_term(1, factors);
  }
  std::vector<Expr> list;
  list.reserve(x.size() * y.size());
  for (const Expr& p : x)
    for (const Expr& q : y) list.push_back(multiply_terms(p, q));
  return sum_of(std::move(list));
}

Expr product(std::span<const Expr> factors) {
  Expr result = 1;
  for (const Expr& factor : factors) result = result * factor;
  return result;
}

}  // namespace oxy::sym
