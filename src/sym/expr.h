// Symbolic integers: the sizes, strides and loop indices of every stage.
//
// An Expr is an immutable value in canonical form, eight bytes wide. A constant is stored inline; anything
// else is a shared node with a cached hash. Two expressions that simplify to the same canonical form compare
// equal. Variables carry their own inclusive range, so that no environment is needed to simplify `i mod 8`
// for i in [0, 7]. Arithmetic is that of mathematical integers; floordiv and mod follow Python (round to
// negative infinity, mod has the sign of the divisor). What cannot be computed is an ArithmeticError.
// Thread-safe: nodes are immutable and reference counted atomically.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace oxy::sym {

class Node;

// A number of sizes that nobody can compute: one of more than 62 bits, or a quotient with a zero divisor.
class ArithmeticError : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

inline constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min() / 4;
inline constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max() / 4;

struct Range {
  int64_t low = kMinInt;
  int64_t high = kMaxInt;  // inclusive
  friend bool operator==(const Range&, const Range&) = default;
};

enum class Kind : uint8_t { Constant, Variable, Sum, Product, FloorDiv, Mod, Min, Max };

class Expr {
 public:
  Expr() : Expr(int64_t{0}) {}
  Expr(int64_t value);                       // NOLINT(google-explicit-constructor): integers are expressions
  Expr(int value) : Expr(int64_t{value}) {}  // NOLINT(google-explicit-constructor)
  Expr(const Expr& other);
  Expr(Expr&& other) noexcept;
  Expr& operator=(const Expr& other);
  Expr& operator=(Expr&& other) noexcept;
  ~Expr();

  // A variable named `name` with values in `range`. Variables of equal id are the same variable.
  static Expr variable(std::string name, int64_t id, Range range);
  // The same, known to be less than `limit`: the index of a loop whose extent is not a number.
  static Expr variable(std::string name, int64_t id, Range range, Expr limit);

  Kind kind() const;
  bool is_constant() const;
  int64_t constant() const;  // InternalError unless is_constant()
  std::optional<int64_t> as_constant() const;
  // Operands of a compound expression. Sum: terms (a constant term, if any, last). Product: factors (a
  // constant coefficient, if any, first). FloorDiv, Mod, Min, Max: two.
  std::span<const Expr> operands() const;
  int64_t variable_id() const;               // InternalError unless kind() == Variable
  const std::string& variable_name() const;  // likewise
  Range range() const;                       // bounds of the value, from the ranges of its variables
  std::string str() const;                   // C-like text: `8*i0 + i1 % 4`; `//` is floor division
  size_t hash() const;

  friend bool operator==(const Expr& a, const Expr& b);  // canonical forms are the same

 private:
  explicit Expr(const Node* node);
  friend class Node;
  friend Expr make_node(Kind, std::vector<Expr>, std::string, int64_t, Range);
  // Low bit 1: an inline constant (value << 1). Low bit 0: a counted pointer to a node. Constants that do not
  // fit in 63 bits are an ArithmeticError.
  uintptr_t bits_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr floordiv(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr ceildiv(const Expr& a, const Expr& b);
Expr product(std::span<const Expr> factors);  // 1 if empty

// Replaces variables by id, simplifying again with the ranges of the replacements.
Expr substitute(const Expr& e, const std::function<std::optional<Expr>(int64_t variable_id)>& replacement);
// The distinct variables of e, ordered by id.
std::vector<Expr> variables(const Expr& e);
// The value with every variable given; InternalError if one is missing.
int64_t evaluate(const Expr& e, const std::function<std::optional<int64_t>(int64_t variable_id)>& value);
// e as `coefficient * variable + rest` with rest free of the variable; nothing if e is not linear in it.
std::optional<std::pair<Expr, Expr>> linear_in(const Expr& e, int64_t variable_id);
// True only if it is certain from the ranges (never by guessing).
bool known_equal(const Expr& a, const Expr& b);
// Also if each term that is taken away is below one that is added: min(a, b) is below a, and a below max(a, b).
bool known_nonnegative(const Expr& e);
bool known_less(const Expr& a, const Expr& b);
bool known_less_equal(const Expr& a, const Expr& b);
bool known_divisible(const Expr& a, const Expr& b);

}  // namespace oxy::sym

template <>
struct std::hash<oxy::sym::Expr> {
  size_t operator()(const oxy::sym::Expr& e) const noexcept { return e.hash(); }
};
