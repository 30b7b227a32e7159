// Whether work grows in proportion to its size, on any machine and under any sanitizer.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>

namespace oxy {

// `work(n)` returns the processor seconds that it took for n steps: ten times the steps may take up to fifty
// times as long, since more of them do not fit into the caches. Quadratic work takes a hundred times.
template <class Work>
void check_growth(Work work, int steps) {
  const auto least = [&work](int n) { return std::min({work(n), work(n), work(n)}); };
  const double small = least(steps / 10), large = least(steps);
  CAPTURE(small);
  CHECK(large < 50 * small + 0.05);
}

template <class Fn>
double processor_seconds(Fn fn) {
  const std::clock_t start = std::clock();
  fn();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace oxy
