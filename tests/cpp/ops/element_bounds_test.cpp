#include "ops/core/element_bounds.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "graph/graph.h"
#include "ops/core/registry.h"

using namespace oxy;

namespace {

// Of the value that the graph returns. `lines`: its nodes.
std::optional<ops::Bounds> bounds_of(const std::string& lines, const std::string& returned) {
  ops::intern_schemas();
  const graph::Graph graph =
      graph::parse("symbol s0 : id 0 in [0, 1000]\ngraph(%0 : float32[s0], %1 : int64[s0]) {\n" + lines +
                   "\n  return " + returned + "\n}\n");
  return ops::element_bounds(graph, graph.outputs.at(0).value);
}

std::string arange(const std::string& range, const std::string& dtype = "int64") {
  return fmt::format(
      "  %2 : {}[s0] = aten::arange.start({}, dtype={}, layout=None, device=cpu, pin_memory=None)\n", dtype,
      range, dtype);
}

bool is_true(const std::optional<ops::Bounds>& bounds) {
  return bounds && bounds->low >= 1;
}

}  // namespace

TEST_CASE("element bounds: comparisons that hold for all sizes") {
  CHECK(is_true(bounds_of(arange("0, s0") + "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)", "%3")));
  CHECK(is_true(bounds_of(arange("0, s0") + "  %3 : bool[s0] = aten::gt.Scalar(%2, -1)", "%3")));
  CHECK(is_true(bounds_of(arange("0, 200") + "  %3 : bool[s0] = aten::le.Scalar(%2, 200)", "%3")));
  CHECK(is_true(bounds_of(
      arange("0, s0") + "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)\n"
                        "  %4 : bool[2, s0]{strides=[0, 1]} = aten::expand(%3, [2, s0], implicit=False)",
      "%4")));
}

TEST_CASE("element bounds: sums and differences") {
  const auto compared = [](const std::string& range, const std::string& node, const std::string& comparison) {
    return is_true(bounds_of(
        arange(range) + "  %3 : int64[s0] = aten::" + node + "\n  %4 : bool[s0] = aten::" + comparison,
        "%4"));
  };
  CHECK(compared("0, s0", "add.Scalar(%2, 0, 1)", "ge.Scalar(%3, 0)"));
  CHECK(compared("0, s0", "add.Tensor(%2, 0, alpha=1)", "ge.Scalar(%3, 0)"));
  CHECK(compared("0, 100", "add.Scalar(%2, 3, 1)", "ge.Scalar(%3, 3)"));
  CHECK(compared("0, 100", "sub.Scalar(%2, 3, 1)", "ge.Scalar(%3, -3)"));
  CHECK(compared("0, 100", "sub.Tensor(%2, %2, alpha=1)", "ge.Scalar(%3, -100)"));
  CHECK_FALSE(compared("0, 100", "sub.Tensor(%2, %2, alpha=1)", "ge.Scalar(%3, 0)"));
  CHECK_FALSE(compared("0, 100", "add.Scalar(%2, 3, 2)", "ge.Scalar(%3, 3)"));
  // The largest integer and 1 are the smallest.
  CHECK_FALSE(compared("0, s0", "add.Scalar(%2, 1, 1)", "ge.Scalar(%3, 0)"));
  CHECK_FALSE(compared("0, s0", "add.Tensor(%2, %2, alpha=1)", "ge.Scalar(%3, 0)"));
}

TEST_CASE("element bounds: what may fail for a size, a rounding or an input is not known") {
  CHECK_FALSE(is_true(bounds_of(arange("-1, s0") + "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)", "%3")));
  CHECK_FALSE(is_true(bounds_of(arange("0, s0") + "  %3 : bool[s0] = aten::lt.Scalar(%2, 999)", "%3")));
  // In bfloat16, 257 is 256.
  CHECK_FALSE(is_true(
      bounds_of(arange("257, 300", "bfloat16") + "  %3 : bool[s0] = aten::gt.Scalar(%2, 256)", "%3")));
  // Just below 1, which is 1 as a float32.
  CHECK_FALSE(
      is_true(bounds_of(arange("1, s0 + 2") + "  %3 : bool[s0] = aten::gt.Scalar(%2, 0.99999999999)", "%3")));
  // 300 wraps around in eight bits.
  CHECK_FALSE(
      is_true(bounds_of(arange("0, 300", "int8") + "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)", "%3")));
  CHECK_FALSE(is_true(bounds_of("  %2 : bool[s0] = aten::ge.Scalar(%0, -inf)", "%2")));  // NaN
  CHECK_FALSE(is_true(bounds_of("  %2 : bool[s0] = aten::ge.Scalar(%1, 0)", "%2")));
}
