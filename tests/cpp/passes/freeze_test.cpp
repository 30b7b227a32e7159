#include <doctest/doctest.h>

#include "aten/operators.h"
#include "passes/weights/freeze_inputs.h"

using namespace oxy;
using namespace oxy::passes;

TEST_CASE("passes: frozen inputs become constants and the rest is renumbered") {
  op::mul();
  graph::Graph g = graph::parse(
      "graph(%0 : float32[4], %1 : float32[4], %2 : float32[4], %3 : float32[4]) {\n"
      "  %4 : float32[4] = aten::mul.Tensor(%0, %1)\n"
      "  %5 : float32[4] = aten::mul.Tensor(%4, %2)\n"
      "  mutate input 3 = %5\n"
      "  return %5, alias(input 2, %2)\n"
      "}\n");
  FrozenGraph frozen = freeze_inputs(g, std::vector<int32_t>{5, -1, 6, 7});
  CHECK_NOTHROW(graph::verify(frozen.graph, true));
  // Input 2 is aliased and input 3 written: they stay.
  CHECK(frozen.kept == std::vector<int32_t>{1, 2, 3});
  CHECK(graph::print(frozen.graph) ==
        "graph(%1 : float32[4], %2 : float32[4], %3 : float32[4]) {\n"
        "  %0 : float32[4] = constant 5\n"
        "  %4 : float32[4] = aten::mul.Tensor(%0, %1)\n"
        "  %5 : float32[4] = aten::mul.Tensor(%4, %2)\n"
        "  mutate input 2 = %5\n"
        "  return %5, alias(input 1, %2)\n"
        "}\n");
}
