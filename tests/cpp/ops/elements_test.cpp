#include "ops/core/elements.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "graph/graph.h"
#include "ops/core/registry.h"

using namespace oxy;

namespace {

struct Known {
  ops::Coordinates at;
  std::optional<ops::Element> element;
};

// Of the value that the graph returns. `lines`: its nodes.
Known element_of(const std::string& lines, const std::string& returned) {
  ops::intern_schemas();
  const graph::Graph graph =
      graph::parse("symbol s0 : id 0 in [0, 1000]\ngraph(%0 : float32[s0], %1 : int64[s0]) {\n" + lines +
                   "\n  return " + returned + "\n}\n");
  const graph::ValueId value = graph.outputs.at(0).value;
  const ops::Coordinates at = ops::coordinates_of(graph.meta(value).sizes);
  return {at, ops::element_at(graph, value, at)};
}

std::string arange(const std::string& range, const std::string& dtype = "int64") {
  return fmt::format(
      "  %2 : {}[s0] = aten::arange.start({}, dtype={}, layout=None, device=cpu, pin_memory=None)\n", dtype,
      range, dtype);
}

std::optional<bool> truth(const Known& known) {
  const auto* condition = known.element ? std::get_if<sym::Condition>(&*known.element) : nullptr;
  return condition == nullptr ? std::nullopt : condition->constant();
}

bool is_true(const std::string& lines, const std::string& returned) {
  return truth(element_of(lines, returned)) == true;
}

bool is_causal(const std::string& lines, const std::string& returned) {
  const Known known = element_of(lines, returned);
  return known.element &&
         *known.element == ops::Element(sym::less_equal(known.at.back(), known.at[known.at.size() - 2]));
}

bool is_number(const std::string& lines, const std::string& returned, const Expr& number) {
  const Known known = element_of(lines, returned);
  return known.element && *known.element == ops::Element(number);
}

constexpr const char* kRowsAndColumns =
    "  %2 : int64[s0] = aten::arange(s0, dtype=int64, layout=None, device=cpu, pin_memory=None)\n"
    "  %3 : int64[s0, 1] = aten::unsqueeze(%2, 1)\n"
    "  %4 : int64[1, s0] = aten::unsqueeze(%2, 0)\n";

std::string triangle(const std::string& comparison) {
  return kRowsAndColumns + ("  %5 : bool[s0, s0] = aten::" + comparison);
}

std::string filled(const std::string& type, const std::string& rest) {
  return fmt::format(
             "  %2 : {}[s0, s0] = aten::ones([s0, s0], dtype={}, layout=None, device=cpu, pin_memory=None)\n",
             type, type) +
         rest;
}

}  // namespace

TEST_CASE("elements: comparisons that hold for all sizes") {
  CHECK(is_true(arange("0, s0") + "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)", "%3"));
  CHECK(is_true(arange("0, s0") + "  %3 : bool[s0] = aten::gt.Scalar(%2, -1)", "%3"));
  CHECK(is_true(arange("0, s0") + "  %3 : bool[s0] = aten::le.Scalar(%2, 1000)", "%3"));
  CHECK(is_true(arange("0, s0") + "  %3 : bool[s0] = aten::lt.Scalar(%2, s0)", "%3"));
  CHECK(is_true(arange("0, s0") +
                    "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)\n"
                    "  %4 : bool[2, s0]{strides=[0, 1]} = aten::expand(%3, [2, s0], implicit=False)",
                "%4"));
}

TEST_CASE("elements: sums and differences") {
  const auto compared = [](const std::string& range, const std::string& node, const std::string& comparison) {
    return is_true(
        arange(range) + "  %3 : int64[s0] = aten::" + node + "\n  %4 : bool[s0] = aten::" + comparison, "%4");
  };
  CHECK(compared("0, s0", "add.Scalar(%2, 0, 1)", "ge.Scalar(%3, 0)"));
  CHECK(compared("0, s0", "add.Tensor(%2, 3, alpha=1)", "ge.Scalar(%3, 3)"));
  CHECK(compared("0, s0", "sub.Scalar(%2, 3, 1)", "ge.Scalar(%3, -3)"));
  CHECK(compared("0, s0", "sub.Tensor(%2, %2, alpha=1)", "eq.Scalar(%3, 0)"));
  CHECK_FALSE(compared("0, s0", "add.Scalar(%2, 3, 2)", "ge.Scalar(%3, 0)"));
  CHECK_FALSE(compared("0, s0", "add.Tensor(%2, %1, alpha=1)", "ge.Scalar(%3, 0)"));
}

TEST_CASE("elements: what may fail for a size, a rounding or an input is not known") {
  CHECK_FALSE(is_true(arange("-1, s0") + "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)", "%3"));
  CHECK_FALSE(is_true(arange("0, s0") + "  %3 : bool[s0] = aten::lt.Scalar(%2, 999)", "%3"));
  // In bfloat16, 257 is 256.
  CHECK_FALSE(is_true(arange("257, 300", "bfloat16") + "  %3 : bool[s0] = aten::gt.Scalar(%2, 256)", "%3"));
  // Just below 1, which is 1 as a float32.
  CHECK_FALSE(is_true(arange("1, s0 + 2") + "  %3 : bool[s0] = aten::gt.Scalar(%2, 0.99999999999)", "%3"));
  // Large ones wrap around in eight bits.
  CHECK_FALSE(is_true(arange("0, s0", "int8") + "  %3 : bool[s0] = aten::ge.Scalar(%2, 0)", "%3"));
  CHECK_FALSE(is_true("  %2 : bool[s0] = aten::ge.Scalar(%0, -inf)", "%2"));  // NaN
  CHECK_FALSE(is_true("  %2 : bool[s0] = aten::ge.Scalar(%1, 0)", "%2"));
}

TEST_CASE("elements: causal masks") {
  CHECK(is_causal(triangle("le.Tensor(%4, %3)"), "%5"));
  CHECK(is_causal(triangle("ge.Tensor(%3, %4)"), "%5"));
  CHECK_FALSE(is_causal(triangle("lt.Tensor(%4, %3)"), "%5"));
  CHECK_FALSE(is_causal(triangle("le.Tensor(%3, %4)"), "%5"));
  CHECK(is_causal(triangle("gt.Tensor(%4, %3)\n  %6 : bool[s0, s0] = aten::logical_not(%5)"), "%6"));
  CHECK(is_causal(triangle("gt.Tensor(%4, %3)\n  %6 : bool[s0, s0] = aten::bitwise_not(%5)"), "%6"));
  CHECK(is_causal(triangle("le.Tensor(%4, %3)\n"
                           "  %6 : bool[s0, 1] = aten::ge.Scalar(%3, 0)\n"
                           "  %7 : bool[s0, s0] = aten::bitwise_and.Tensor(%5, %6)\n"
                           "  %8 : bool[1, s0, s0] = aten::unsqueeze(%7, 0)"),
                  "%8"));
  CHECK(is_causal(filled("bool", "  %3 : bool[s0, s0] = aten::tril(%2, 0)"), "%3"));
  CHECK_FALSE(is_causal(filled("bool", "  %3 : bool[s0, s0] = aten::tril(%2, 1)"), "%3"));
  CHECK(is_causal(filled("float32",
                         "  %3 : float32[s0, s0] = aten::tril(%2, 0)\n"
                         "  %4 : bool[s0, s0] = aten::ne.Scalar(%3, 0)"),
                  "%4"));
  CHECK(is_causal(filled("float32",
                         "  %3 : float32[s0, s0] = aten::triu(%2, 1)\n"
                         "  %4 : bool[s0, s0] = aten::eq.Scalar(%3, 0)"),
                  "%4"));
  CHECK(is_causal(filled("bool",
                         "  %3 : bool[s0, s0] = aten::triu(%2, 0)\n"
                         "  %4 : bool[s0, s0]{strides=[1, max(s0, 1)]} = aten::t(%3)"),
                  "%4"));
}

// As transformers finds the sequences that are packed into one row, by their positions.
TEST_CASE("elements: positions that are joined, indexed and summed up") {
  const std::string positions = std::string(kRowsAndColumns) +
                                "  %5 : int64[1, 1]{strides=[s0, 1]} = aten::slice.Tensor(%4, 1, 0, 1, 1)\n"
                                "  %6 : int64[1, 1] = aten::sub.Tensor(%5, 1, alpha=1)\n"
                                "  %7 : int64[1, s0 + 1] = aten::cat([%6, %4], -1)\n";
  const auto joined = element_of(positions, "%7");
  REQUIRE(joined.element);
  CHECK(*joined.element == ops::Element(joined.at[1] - 1));
  const std::string sequences =
      positions +
      "  %8 : int64[1, s0]{strides=[s0 + 1, 1]} = aten::slice.Tensor(%7, -1, 0, s0, 1)\n"
      "  %9 : int64[1, s0]{strides=[s0 + 1, 1], offset=1} = aten::slice.Tensor(%7, -1, 1, s0 + 1, 1)\n"
      "  %10 : int64[1, s0] = aten::sub.Tensor(%9, %8, alpha=1)\n"
      "  %11 : bool[1, s0] = aten::ne.Scalar(%10, 1)\n"
      "  %12 : int64[1, s0] = aten::cumsum(%11, -1, dtype=None)\n";
  CHECK(is_number(sequences, "%12", 0));
  CHECK(is_true(sequences + "  %13 : int64[s0, 1] = aten::index.Tensor(%2, [%3])\n"
                            "  %14 : bool[s0, 1] = aten::eq.Tensor(%13, %3)",
                "%14"));
  // An index that may be negative counts from the end, and one that is too large raises.
  CHECK_FALSE(is_true(positions + "  %8 : int64[1, s0 + 1] = aten::index.Tensor(%2, [%7])\n"
                                  "  %9 : bool[1, s0 + 1] = aten::ge.Scalar(%8, -1)",
                      "%9"));
}

TEST_CASE("elements: bits of integers are no truth values") {
  CHECK_FALSE(
      is_true("  %2 : int64[4] = aten::full([4], 1, dtype=int64, layout=None, device=cpu, pin_memory=None)\n"
              "  %3 : int64[4] = aten::full([4], 2, dtype=int64, layout=None, device=cpu, pin_memory=None)\n"
              "  %4 : int64[4] = aten::bitwise_and.Tensor(%2, %3)\n"
              "  %5 : bool[4] = aten::ne.Scalar(%4, 0)",
              "%5"));
  CHECK_FALSE(
      is_true("  %2 : int64[4] = aten::full([4], 1, dtype=int64, layout=None, device=cpu, pin_memory=None)\n"
              "  %3 : int64[4] = aten::bitwise_not(%2)\n"
              "  %4 : bool[4] = aten::eq.Scalar(%3, 0)",
              "%4"));
}
