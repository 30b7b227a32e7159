// Conditions: relations, and what `and` and `or` make of them.
//
// A condition is a value in negation normal form: `not` reaches the relations, which have negations of their
// own. Parts that are constants or stand there twice are left out, and `and` within `and` is one `and`.
#pragma once

#include <functional>
#include <string>

#include "sym/relations/relation.h"

namespace oxy::sym {

enum class ConditionKind : uint8_t { Relation, All, Any };

class Condition {
 public:
  Condition(bool value);                // NOLINT(google-explicit-constructor): truth values are conditions
  Condition(const Relation& relation);  // NOLINT(google-explicit-constructor)
  static Condition all(std::vector<Condition> parts);
  static Condition any(std::vector<Condition> parts);

  ConditionKind kind() const { return kind_; }
  const Relation& relation() const;                            // InternalError unless kind() == Relation
  std::span<const Condition> parts() const { return parts_; }  // none for a relation
  std::optional<bool> constant() const;                        // all of nothing: true; any of nothing: false

  friend bool operator==(const Condition& a, const Condition& b);

 private:
  Condition(ConditionKind kind, std::vector<Condition> parts);

  ConditionKind kind_;
  std::optional<Relation> relation_;
  std::vector<Condition> parts_;
};

Condition operator!(const Condition& condition);

Condition equal(const Expr& a, const Expr& b);
Condition not_equal(const Expr& a, const Expr& b);
Condition less(const Expr& a, const Expr& b);
Condition less_equal(const Expr& a, const Expr& b);
Condition divisible(const Expr& a, const Expr& b);  // a % b == 0

// The distinct variables, ordered by id.
std::vector<Expr> variables(const Condition& condition);
// The same of other expressions.
Condition map(const Condition& condition, const std::function<Expr(const Expr&)>& expression);
// Whether it holds where every variable has a value; as evaluate() of expressions.
bool evaluate(const Condition& condition,
              const std::function<std::optional<int64_t>(int64_t variable_id)>& value);

// As a person writes it: `x.size(0) == y.size(1) + 2`, `s % 8 == 0`, `2 <= s`. `name` gives what is written
// for a variable, by its id; without it that is the variable's own name.
using Names = std::function<std::string(int64_t variable_id)>;
std::string text(const Expr& expression, const Names& name);
std::string text(const Condition& condition, const Names& name = {});

}  // namespace oxy::sym
