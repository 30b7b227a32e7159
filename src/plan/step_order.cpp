#include "plan/step_order.h"

#include <algorithm>

namespace oxy::plan {

namespace {

bool is_shared(const Access& a, const Access& b) {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end && (a.is_written || b.is_written);
}

bool share(const std::vector<Access>& a, const std::vector<Access>& b) {
  return std::ranges::any_of(a, [&](const Access& x) {
    return std::ranges::any_of(b, [&](const Access& y) { return is_shared(x, y); });
  });
}

}  // namespace

std::vector<std::vector<size_t>> predecessors(std::span<const std::vector<Access>> steps) {
  std::vector<std::vector<size_t>> result(steps.size());
  std::vector<std::vector<bool>> is_before(
      steps.size());  // by step: the steps that it follows, at any distance
  for (size_t i = 0; i < steps.size(); ++i) {
    is_before[i].resize(i, false);
    // The latest first: it follows most of the others.
    for (size_t j = i; j-- > 0;) {
      if (is_before[i][j] || !share(steps[i], steps[j])) continue;
      result[i].push_back(j);
      is_before[i][j] = true;
      for (size_t k = 0; k < j; ++k)
        if (is_before[j][k]) is_before[i][k] = true;
    }
    std::ranges::reverse(result[i]);
  }
  return result;
}

}  // namespace oxy::plan
