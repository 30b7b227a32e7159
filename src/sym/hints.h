// Values at hand of the symbols that a graph was captured with. Costs are computed with them, and never an
// answer.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sym/expr.h"

namespace oxy::sym {

class Hints {
 public:
  Hints() = default;
  // `values`: by id of the symbol.
  explicit Hints(std::vector<std::optional<int64_t>> values) : values_(std::move(values)) {}
  std::optional<int64_t> of(int64_t variable) const {
    const bool is_known = variable >= 0 && static_cast<size_t>(variable) < values_.size();
    return is_known ? values_[static_cast<size_t>(variable)] : std::nullopt;
  }

 private:
  std::vector<std::optional<int64_t>> values_;
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
