// The guards of a compilation as they are checked at every call.
#pragma once

#include "sym/environment/shape_environment.h"
#include "sym/program/integer_program.h"

namespace oxy::sym {

class GuardProgram {
 public:
  GuardProgram() = default;
  explicit GuardProgram(const ShapeEnvironment& environment);

  // The symbols whose values a run wants, in this order: those that occur in guards.
  std::span<const SymbolId> inputs() const { return inputs_; }
  const IntegerProgram& program() const { return program_; }
  // How each guard reads: "2 <= x.size(0) <= 512 (file.py:12 in forward)".
  std::span<const std::string> texts() const { return texts_; }

  // Why a run with these values did not hold: "x.size(0) <= 512 (file.py:12 in forward): x.size(0) was 64, is
  // 600".
  std::string explain(const RunOutcome& outcome, std::span<const int64_t> values) const;

 private:
  struct Input {
    std::string name;
    int64_t value = 0;  // when the guards were made
  };
  std::vector<SymbolId> inputs_;
  std::vector<Input> described_;                // by input
  std::vector<std::vector<size_t>> inputs_of_;  // by guard
  std::vector<std::string> texts_;
  IntegerProgram program_;
};

}  // namespace oxy::sym
