// Random expressions and conditions over a few variables, and all assignments of small values to them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

#include "sym/relations/condition.h"

namespace oxy::sym::testing {

using Assignment = std::vector<int64_t>;  // by variable

// OXYFUEL_FUZZ is how many times as many programs are tried.
inline int rounds(int usual) {
  const char* factor = std::getenv("OXYFUEL_FUZZ");
  return factor ? usual * std::max(1, std::atoi(factor)) : usual;
}

inline auto value_in(const Assignment& assignment) {
  return [&assignment](int64_t id) { return std::optional<int64_t>(assignment[static_cast<size_t>(id)]); };
}

class RandomConditions {
 public:
  explicit RandomConditions(uint64_t seed) : random_(seed) {}

  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t percent) { return pick(100) < percent; }

  // Variables with the ids 0, 1, …; some are bounded, some at least 1, some of any sign.
  void draw_variables() {
    const int64_t count = 2 + pick(2);
    variables_.clear();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t low = chance(60) ? 0 : chance(50) ? 1 : chance(50) ? -2 : kMinInt;
      const int64_t high = chance(50) ? kMaxInt : std::max<int64_t>(low, 0) + 1 + pick(6);
      variables_.push_back(Expr::variable("v" + std::to_string(i), i, {low, high}));
    }
  }
  const std::vector<Expr>& variables() const { return variables_; }

  // Those in the variables' ranges with values from -3 to 8.
  std::vector<Assignment> assignments() const {
    std::vector<Assignment> list{{}};
    for (const Expr& v : variables_) {
      std::vector<Assignment> longer;
      for (const Assignment& a : list)
        for (int64_t value = std::max<int64_t>(-3, v.range().low);
             value <= std::min<int64_t>(8, v.range().high); ++value) {
          longer.push_back(a);
          longer.back().push_back(value);
        }
      list = std::move(longer);
    }
    return list;
  }

  Expr expression(int depth = 2) {
    if (depth == 0 || chance(25)) return chance(85) ? variable() : Expr(pick(9) - 2);
    const Expr a = expression(depth - 1);
    switch (pick(9)) {
      case 0:
      case 1:
        return a + expression(depth - 1);
      case 2:
        return a - expression(depth - 1);
      case 3:
        return a * (1 + pick(4));
      case 4:
        return a * expression(0);
      case 5:
        return floordiv(a, divisor());
      case 6:
        return mod(a, divisor());
      case 7:
        return min(a, expression(depth - 1));
      default:
        return max(a, expression(depth - 1));
    }
  }

  Condition condition(int depth = 1) {
    if (depth > 0 && chance(12)) return Condition::any({condition(depth - 1), condition(depth - 1)});
    if (depth > 0 && chance(8)) return Condition::all({condition(depth - 1), condition(depth - 1)});
    const Expr a = chance(40) ? variable() : expression();
    const Expr b = chance(60) ? Expr(pick(9)) : chance(50) ? variable() : expression(1);
    switch (pick(6)) {
      case 0:
        return equal(a, b);
      case 1:
        return not_equal(a, b);
      case 2:
        return less(a, b);
      case 3:
        return less_equal(b, a);
      case 4:
        return divisible(a, 2 + pick(5));
      default:
        return equal(mod(a, 2 + pick(5)), pick(2));
    }
  }

 private:
  Expr variable() { return variables_[static_cast<size_t>(pick(static_cast<int64_t>(variables_.size())))]; }
  // Never zero.
  Expr divisor() {
    const Expr v = variable();
    return v.range().low > 0 && chance(40) ? v : Expr(2 + pick(5));
  }

  std::mt19937_64 random_;
  std::vector<Expr> variables_;
};

}  // namespace oxy::sym::testing
