// Expressions and conditions as a flat list of instructions over 64-bit integers.
//
// A program is compiled once and run at every call: guards over the sizes that came in, and the expressions
// of a plan. A run reads the inputs, works in memory of the caller's, allocates nothing and cannot fail in an
// undefined way: where a number does not fit in 64 bits, or a divisor is zero, it stops and says so. Programs
// are immutable, so that threads may share one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sym/relations/condition.h"

namespace oxy::sym {

enum class RunStatus : uint8_t {
  Holds,         // all conditions hold, and the results are there
  Fails,         // condition number `condition` does not hold
  Overflow,      // a number needs more than 64 bits
  ZeroDivision,  // a divisor is zero
};

struct RunOutcome {
  RunStatus status = RunStatus::Holds;
  int32_t condition = -1;  // where it stopped: the condition's number, or -1 if it was at the results
  friend bool operator==(const RunOutcome&, const RunOutcome&) = default;
};

class IntegerProgram {
 public:
  IntegerProgram() = default;
  // Input number i is the variable with the id inputs[i]. Conditions are checked in order, results are
  // computed after them. InternalError if another variable occurs. Unsupported beyond 65,535 slots.
  IntegerProgram(std::span<const int64_t> inputs, std::span<const Condition> conditions,
                 std::span<const Expr> results = {});

  // How many integers a run works in.
  size_t slots() const { return slots_; }
  size_t inputs() const { return inputs_; }
  size_t instructions() const { return code_.size(); }

  // Precondition: values.size() == inputs() and work.size() >= slots().
  RunOutcome run(std::span<const int64_t> values, std::span<int64_t> work) const noexcept;
  // Result number i of the run that holds and worked there.
  int64_t result(std::span<const int64_t> work, size_t i) const { return work[results_[i]]; }

 private:
  friend class IntegerProgramBuilder;
  enum class Operation : uint8_t {
    Add,
    Subtract,
    Multiply,
    FloorDivide,
    Modulo,
    Min,
    Max,
    IsEqual,
    IsNotEqual,
    IsLess,
    IsLessEqual,
    And,
    Or,
    // The condition does not hold unless:
    NeedEqual,
    NeedNotEqual,
    NeedLess,
    NeedLessEqual,
    NeedTrue,
    NeedLinear,  // the next of linear_
  };
  struct Instruction {
    Operation operation;
    uint16_t target = 0;  // unused by Need…
    uint16_t a = 0;
    uint16_t b = 0;
  };
  // A relation between a sum of multiples of inputs and 0, which one instruction decides without overflow.
  struct Linear {
    int64_t constant = 0;
    RelationKind kind = RelationKind::Zero;
    uint16_t terms = 0;  // how many of terms_
  };
  struct Term {
    int32_t coefficient = 0;
    uint16_t input = 0;
  };

  // Slots: the inputs, the constants, what instructions compute.
  std::vector<Instruction> code_;
  std::vector<int32_t> condition_of_;  // by instruction; -1: of a result
  std::vector<Linear> linear_;         // in the order of their instructions
  std::vector<Term> terms_;            // those of the first of linear_, of the second, and so on
  std::vector<int64_t> constants_;
  std::vector<uint16_t> results_;  // the slots
  size_t inputs_ = 0;
  size_t slots_ = 0;
};

}  // namespace oxy::sym
