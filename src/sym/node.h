// The shared representation behind Expr; private to this folder.
#pragma once

#include <atomic>
#include <compare>
#include <span>
#include <string>
#include <vector>

#include "sym/expr.h"

namespace oxy::sym {

class Node {
 public:
  Kind kind = Kind::Constant;
  mutable std::atomic<uint32_t> references{0};
  size_t hash = 0;
  Range range;
  uint64_t variable_mask = 0;  // bit (id % 64) for every variable below: a quick "does not contain"
  std::vector<Expr> operands;
  std::string name;
  int64_t id = 0;
  std::optional<Expr> limit;  // of a variable that is less than it

  static const Node* of(const Expr& e) { return reinterpret_cast<const Node*>(e.bits_); }
  static bool same_bits(const Expr& a, const Expr& b) { return a.bits_ == b.bits_; }
};

// A node with these operands, which are already canonical; `range` is used for variables and computed
// otherwise.
Expr make_node(Kind kind, std::vector<Expr> operands, std::string name, int64_t id, Range range);

inline uint64_t variable_mask(const Expr& e) {
  return e.is_constant() ? 0 : Node::of(e)->variable_mask;
}

// A total order on canonical expressions: variables by id, then compounds, constants last.
std::strong_ordering compare(const Expr& a, const Expr& b);

// A sum's terms, a single expression being its own only term.
std::span<const Expr> terms(const Expr& e);
std::span<const Expr> terms(Expr&&) = delete;  // the span would outlive it

// A term as coefficient and non-constant factors.
struct Monomial {
  int64_t coefficient = 1;
  std::span<const Expr> factors;
};
Monomial monomial(const Expr& term);
Monomial monomial(Expr&&) = delete;
Expr make_term(int64_t coefficient, std::span<const Expr> factors);  // factors in order
Expr make_sum(std::vector<Expr> terms);                              // canonical terms in order, none zero
std::strong_ordering compare_terms(const Expr& a, const Expr& b);    // ignores the coefficients
Expr sum_of(std::vector<Expr> terms);                                // any terms, in any order

// Interval arithmetic in which everything beyond kMinInt and kMaxInt is unbounded.
Range range_of(Kind kind, std::span<const Expr> operands);

// The contract's arithmetic on machine integers; ArithmeticError on overflow.
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_multiply(int64_t a, int64_t b);
// Precondition of both: b is not zero, and not -1 if a is the smallest integer.
constexpr int64_t floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}
constexpr int64_t floor_modulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

}  // namespace oxy::sym
