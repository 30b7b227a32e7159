// Which computations become one kernel.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/graph_checks.h"

using namespace oxy;
using namespace oxy::testing;

namespace {

size_t kernels(const std::string& graph) {
  const plan::Plan plan = scheduled(lowered(graph), backend::cpu::make_target(backend::cpu::Isa::Avx512), {});
  return plan.kernels.size();
}

// Sums of a matrix of `rows` x `columns` over each of its dimensions.
std::string sums_both_ways(int rows, int columns) {
  return fmt::format(
      "graph(%0: float32[{0}, {1}]) {{\n"
      "  %1: float32[{1}] = aten::sum.dim_IntList(%0, [0], False, dtype=None)\n"
      "  %2: float32[{0}] = aten::sum.dim_IntList(%0, [1], False, dtype=None)\n"
      "  return %1, %2\n}}",
      rows, columns);
}

}  // namespace

TEST_CASE("fusion: sums of rows and of columns stay apart where a tensor is square") {
  CHECK(kernels(sums_both_ways(1024, 1024)) == kernels(sums_both_ways(1024, 1032)));
  check_graph(sums_both_ways(256, 256), {1e-4, 1e-4});
}

TEST_CASE("fusion: reductions of the same rows are one kernel") {
  CHECK(kernels("graph(%0: float32[1024, 1024]) {\n"
                "  %1: float32[1024] = aten::sum.dim_IntList(%0, [1], False, dtype=None)\n"
                "  %2: float32[1024] = aten::amax(%0, [1], False)\n"
                "  return %1, %2\n}") == 1);
}
