// Kernels read nothing of tensors without elements, whose memory is none: PlanRunner gives a null pointer.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/graph_checks.h"

using namespace oxy;
using namespace oxy::testing;

namespace {

constexpr int64_t kSizes[] = {0, 1, 5, 40};

// With the sizes as numbers, and as symbols. `text`: a graph whose sizes are `a` and `b`.
void check_for_all_sizes(const std::string& text) {
  for (const int64_t a : kSizes)
    for (const int64_t b : kSizes) {
      CAPTURE(a);
      CAPTURE(b);
      std::string numbers;
      for (size_t i = 0; i < text.size(); ++i) {
        const auto is_letter = [&](size_t at) { return at < text.size() && std::isalpha(text[at]) != 0; };
        const bool is_name = (text[i] == 'a' || text[i] == 'b') && !is_letter(i + 1) && !is_letter(i - 1) &&
                             text[i - 1] != '_' && text[i + 1] != '_';
        numbers += is_name ? std::to_string(text[i] == 'a' ? a : b) : std::string(1, text[i]);
      }
      const Tolerance tolerance{1e-4, 1e-4};
      if (a * b == 0) check_graph(numbers, tolerance);
      check_graph("symbol a : id 1 in [0, 1024]\nsymbol b : id 2 in [0, 1024]\n" + text, tolerance,
                  usual_ways(), backend::cpu::default_compiler(), {{1, a}, {2, b}});
    }
}

}  // namespace

TEST_CASE("empty memory: reductions over nothing of what does not vary along it") {
  check_for_all_sizes(R"(graph(%0: float32[a, b], %1: float32[a, b]{strides=[1, 0]}) {
  %2: float32[a, b] = aten::mul.Tensor(%0, %1)
  %3: float32[a] = aten::sum.dim_IntList(%2, [1], False, dtype=None)
  %4: float32[b] = aten::sum.dim_IntList(%2, [0], False, dtype=None)
  %5: float32[a, 1] = aten::logsumexp(%1, [1], True)
  %6: float32[] = aten::sum(%1, dtype=None)
  return %3, %4, %5, %6
})");
}

TEST_CASE("empty memory: repeated rows") {
  for (const int64_t rows : {1, 4, 40})
    check_graph(fmt::format(R"(graph(%0: float32[{0}, 0]) {{
  %1: float32[{0}, 0] = aten::floor_divide(%0, %0)
  %2: float32[{1}, 0] = aten::repeat(%1, [2, 1])
  %3: float32[{1}, 1] = aten::logsumexp(%2, [1], True)
  %4: float32[{1}] = aten::sum.dim_IntList(%2, [1], False, dtype=None)
  return %3, %4
}})",
                            rows, 2 * rows));
}

TEST_CASE("empty memory: what is computed between loops without iterations") {
  check_for_all_sizes(R"(graph(%0: float32[a, a, b, a], %1: float32[a]) {
  %2: float32[a, a, b, a] = aten::lerp.Scalar(%0, %1, 0.3)
  %3: float32[a, a, b, a, 1] = aten::view(%2, [a, a, b, a, 1])
  %4: float32[a, a, b, a, 1] = aten::clamp(%3, -3, 3)
  %5: float32[a, a, b, a, 1] = aten::pow.Scalar(2.0, %4)
  %6: float32[a, a, b, a, 1] = aten::mul.Tensor(%3, %5)
  %7: float32[a, a, b, a] = aten::clone(%2, memory_format=preserve)
  return %6, %2, %7
})");
}

TEST_CASE("empty memory: numbers of rows beside rows without elements") {
  check_for_all_sizes(R"(graph(%0: float32[a, b], %1: float32[a, 1], %2: float32[1, b], %3: int64[a, 1]) {
  %4: float32[a, b] = aten::add.Tensor(%0, %1)
  %5: float32[a, b] = aten::mul.Tensor(%4, %2)
  %6: float32[a, b] = aten::_softmax(%5, -1, False)
  %7: float32[a] = aten::sum.dim_IntList(%6, [1], False, dtype=None)
  %8: float32[a, b] = aten::mul.Tensor(%6, %3)
  %9: float32[] = aten::sum(%8, dtype=None)
  %10: float32[a, b] = aten::sub.Tensor(%8, %9)
  return %7, %10
})");
}
