// Values at hand of the symbols that a graph was captured with. Costs are computed with them, and never an
// answer.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sym/expr.h"
#include "sym/multiples.h"

namespace oxy::sym {

class Hints {
 public:
  Hints() = default;
  // `values`: by id of the symbol.
  explicit Hints(std::vector<std::optional<int64_t>> values) : values_(std::move(values)) {}
  std::optional<int64_t> of(int64_t variable) const;
  // Adds the hint of quotient_variable(multiple), if the symbol has one.
  void add(const Multiple& multiple);

 private:
  std::vector<std::optional<int64_t>> values_;
  std::vector<std::pair<int64_t, int64_t>> of_quotients_;  // by id of their variables
};

// While one lives, estimate() on this thread knows these hints. The innermost counts.
class HintScope {
 public:
  explicit HintScope(const Hints& hints);  // which outlive it
  ~HintScope();
  HintScope(const HintScope&) = delete;
  HintScope& operator=(const HintScope&) = delete;

 private:
  const Hints* outer_;
};

// The value of e for the hints; nothing if a variable has none.
std::optional<int64_t> at_hand(const Expr& e);

// A number near the value of e, for costs. A variable without a hint counts as a typical size.
int64_t estimate(const Expr& e);

}  // namespace oxy::sym
