// Plans with symbolic sizes, for the sizes of one call.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"
#include "sym/program/integer_program.h"

namespace oxy::runtime {

// The expressions of a plan, compiled once, and the plan with numbers in their places. Used by one thread at
// a time.
class SymbolicPlan {
 public:
  // Unsupported if the plan has too many.
  explicit SymbolicPlan(const plan::Plan& plan);
  SymbolicPlan(const SymbolicPlan&) = delete;  // what at() gives is known by its addresses
  SymbolicPlan& operator=(const SymbolicPlan&) = delete;

  // The ids of the variables in the plan's sizes, in ascending order. Empty: all are numbers.
  const std::vector<int64_t>& symbols() const { return symbols_; }

  // Computes all expressions, with values[i] for the variable with the id symbols()[i]. sym::ArithmeticError
  // where a size does not fit. False if a size that has to be positive is not.
  bool evaluate(std::span<const int64_t> values);
  // The plan with the numbers of the last evaluate(): always the same object. Kernel sources are left out.
  const plan::Plan& with_numbers();

  // Of numbers in that plan: whether the number is the same, and whether two are alike, whatever the symbols
  // are.
  bool is_fixed(const Expr& place) const { return !number_of_.contains(&place); }
  bool are_alike(const Expr& a, const Expr& b) const;
  bool are_alike(const std::vector<Expr>& a, const std::vector<Expr>& b) const;
  // Which expression stands there; not of what is fixed. And its value.
  size_t expression_at(const Expr& place) const { return number_of_.at(&place); }
  int64_t value(size_t expression) const { return program_.result(work_, expression); }

 private:
  plan::Plan plan_;  // without sources and definitions
  std::vector<int64_t> symbols_;
  std::vector<Expr> expressions_;                      // those that are no numbers, in order
  std::vector<Expr*> places_;                          // where they stand in plan_
  std::unordered_map<const Expr*, size_t> number_of_;  // by place: of which expression
  sym::IntegerProgram program_;                        // its results: `expressions_`
  std::vector<int64_t> work_;
  bool is_written_ = false;  // the last numbers are in plan_
};

}  // namespace oxy::runtime
