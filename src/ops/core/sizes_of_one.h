// Sizes that are 1 for some calls, where eager lays out a result in another way then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/core/size_questions.h"

namespace oxy::ops {

// Calls `f` with each set of these sizes, and with `first` before them: smaller sets before those that they
// are in. Sizes beyond the first six are left out: a rule would ask too often. `first`: the empty set, or
// {1}.
template <class F>
void for_each_set_of_ones(std::vector<sym::Expr> may_be_one, const std::vector<sym::Expr>& first,
                          const F& f) {
  constexpr size_t kMostSizes = 6;
  may_be_one.resize(std::min(may_be_one.size(), kMostSizes));
  for (uint32_t set = 0; set < (1U << may_be_one.size()); ++set) {
    std::vector<sym::Expr> ones = first;
    for (size_t i = 0; i < may_be_one.size(); ++i)
      if ((set >> i & 1U) != 0) ones.push_back(may_be_one[i]);
    f(ones);
  }
}

// Decides whether all of these sizes are 1, by a guard on one of them if they are not.
inline void decide_ones(const SizeQuestions& questions, const std::vector<sym::Expr>& ones) {
  const auto other = std::ranges::find_if(
      ones, [&](const sym::Expr& e) { return questions.at_hand(sym::equal(e, 1)) != true; });
  if (other != ones.end()) {
    questions.decide_layout(sym::equal(*other, 1));
    return;
  }
  for (const sym::Expr& one : ones)
    if (one != sym::Expr(1)) questions.decide_layout(sym::equal(one, 1));
  questions.need_exact_ones();
}

}  // namespace oxy::ops
