// Plans with symbolic sizes, for the sizes of one call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "sym/program/integer_program.h"

namespace oxy::runtime {

// The expressions of a plan, compiled once.
class SymbolicPlan {
 public:
  // Unsupported if the plan has too many.
  explicit SymbolicPlan(const plan::Plan& plan);

  // The ids of the variables in the plan's sizes, in ascending order. Empty: all are numbers.
  const std::vector<int64_t>& symbols() const { return symbols_; }

  // The plan with values[i] for the variable with the id symbols()[i]. Kernel sources are left out.
  // sym::ArithmeticError where a size does not fit.
  plan::Plan at(std::span<const int64_t> values) const;

 private:
  plan::Plan plan_;  // without sources and definitions
  std::vector<int64_t> symbols_;
  sym::IntegerProgram program_;  // its results: the expressions that are no numbers, in order
};

}  // namespace oxy::runtime
