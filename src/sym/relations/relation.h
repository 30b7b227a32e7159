// Relations: what is or is not so of an expression and zero.
//
// Every question about integers becomes one of three: is it zero, is it not zero, is it at least zero.
// Numbers have no fractions, so `a < b` is `b - a - 1 >= 0`. A relation is in canonical form: common factors
// of the coefficients are divided out, `a // 8 >= 1` is `a >= 8`, and of `a - b == 0` and `b - a == 0` there
// is one. Two relations that are written differently and have one canonical form compare equal. The negation
// of a relation is a relation.
#pragma once

#include <cstdint>
#include <optional>

#include "sym/expr.h"

namespace oxy::sym {

enum class RelationKind : uint8_t { Zero, NonZero, NonNegative };

class Relation {
 public:
  Relation(RelationKind kind, const Expr& value);  // ArithmeticError if the numbers are too large

  RelationKind kind() const { return kind_; }
  const Expr& value() const { return value_; }
  // Whether it holds, if it does or does not for all values in the variables' ranges, as far as intervals
  // tell.
  std::optional<bool> constant() const;

  friend bool operator==(const Relation&, const Relation&) = default;

 private:
  RelationKind kind_;
  Expr value_;
};

Relation operator!(const Relation& relation);
bool holds(RelationKind kind, int64_t value);

// How a person writes a relation: without negative terms, `<` where that is shorter than `<=`.
enum class Comparison : uint8_t { Equal, NotEqual, Less, LessEqual };
struct Comparands {
  Expr left;
  Comparison comparison = Comparison::Equal;
  Expr right;
};
Comparands comparands(const Relation& relation);

}  // namespace oxy::sym
