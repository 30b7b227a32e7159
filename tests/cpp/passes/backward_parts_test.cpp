// The parts of a backward graph.
#include <doctest/doctest.h>

#include <string>

#include "ops/core/registry.h"
#include "passes/pipeline/pipeline.h"
#include "passes/training/backward_parts.h"

using namespace oxy;
using namespace oxy::passes;

namespace {

std::vector<BackwardPart> parts_of(std::string_view text, const BackwardRoles& roles,
                                   bool simplified = false) {
  ops::intern_schemas();
  graph::Graph whole = graph::parse(text);
  std::vector<Total> totals;
  for (const auto& gradient : roles.gradients)
    if (gradient.result >= 0)
      totals.push_back({static_cast<size_t>(gradient.output), static_cast<size_t>(gradient.result)});
  whole = hold_totals_apart(whole, totals);
  if (simplified) whole = run_passes(std::move(whole), {});
  graph::verify(whole, true);
  std::vector<BackwardPart> parts = backward_parts(whole, roles);
  for (const BackwardPart& part : parts) {
    graph::verify(part.graph, true);
    CHECK(part.graph.inputs.size() == part.saved.size() + part.tangents.size());
  }
  return parts;
}

std::string operators(const graph::Graph& graph) {
  std::string names;
  for (const graph::Node& node : graph.nodes) names += (names.empty() ? "" : " ") + node.op->name.substr(6);
  return names;
}

using Numbers = std::vector<size_t>;

}  // namespace

TEST_CASE("results that have nothing to do with each other read what they need, and no more") {
  const auto parts = parts_of(R"(graph(%0 : float32[4], %1 : float32[4], %2 : float32[4], %3 : float32[4]) {
  %4 : float32[4] = aten::mul.Tensor(%2, %0)
  %5 : float32[4] = aten::cos(%1)
  %6 : float32[4] = aten::mul.Tensor(%3, %5)
  %7 : float32[4] = aten::add.Tensor(%4, %6, alpha=1)
  return %4, %7
})",
                              {2, {PartId(0), PartId(1)}, {{0, -1, {true, false}}, {1, -1, {true, true}}}});
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].saved == Numbers{0});
  CHECK(parts[0].tangents == Numbers{0});
  CHECK(operators(parts[0].graph) == "mul.Tensor");
  CHECK(parts[0].gradients == std::vector<int32_t>{0, 1});
  CHECK(parts[1].saved == Numbers{1});
  CHECK(parts[1].tangents == Numbers{1});
  CHECK(operators(parts[1].graph) == "cos mul.Tensor");
  CHECK(parts[1].gradients == std::vector<int32_t>{-1, 0});
}

TEST_CASE("a gradient ends at a result of another part, whose own part goes on from the total") {
  const auto parts = parts_of(R"(graph(%0 : float32[4], %1 : float32[4], %2 : float32[4]) {
  %3 : float32[4] = aten::cos(%0)
  %4 : float32[4] = aten::mul.Tensor(%2, %3)
  %5 : float32[4] = aten::add.Tensor(%1, %4, alpha=1)
  %6 : float32[4] = aten::neg(%5)
  return %6, %5
})",
                              {1, {PartId(5), PartId(9)}, {{0, -1, {true, false}}, {1, 0, {false, true}}}});
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].tangents == Numbers{0});
  CHECK(operators(parts[0].graph) == "neg");
  CHECK(parts[0].saved.empty());
  CHECK(parts[0].gradients == std::vector<int32_t>{0, -1});
  CHECK(parts[1].tangents == Numbers{1});
  CHECK(operators(parts[1].graph) == "cos mul.Tensor");
  CHECK(parts[1].gradients == std::vector<int32_t>{-1, 0});
}

TEST_CASE("a part comes behind those that it sends gradients to, whatever its number") {
  const auto parts = parts_of(R"(graph(%0 : float32[4], %1 : float32[4]) {
  %2 : float32[4] = aten::neg(%1)
  %3 : float32[4] = aten::add.Tensor(%0, %2, alpha=1)
  return %3, %3
})",
                              {0, {PartId(1), PartId(0)}, {{0, -1, {true, false}}, {1, 0, {false, true}}}});
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].tangents == Numbers{0});
  // The total is the gradient: it stays the tensor that comes in.
  REQUIRE(parts[0].graph.outputs.size() == 1);
  CHECK(parts[0].graph.outputs[0].kind == graph::OutputKind::InputAlias);
  CHECK(parts[0].graph.nodes.empty());
  CHECK(parts[1].tangents == Numbers{1});
  CHECK(operators(parts[1].graph) == "neg");
}

TEST_CASE("what goes on from a total is cut, however the graph was simplified") {
  // The second part's gradient of the first input of all is what came to the result, as it is.
  for (const bool simplified : {false, true}) {
    const auto parts = parts_of(
        R"(graph(%0 : float32[2, 3], %1 : float32[2, 3], %2 : float32[2, 3]) {
  %3 : float32[2, 3] = aten::mul.Tensor(%2, %0)
  %4 : float32[2, 3] = aten::add.Tensor(%1, %3, alpha=1)
  %5 : float32[2, 3] = aten::mul.Tensor(%4, 1)
  %6 : float32[2, 3] = aten::mul.Tensor(%4, %0)
  %7 : float32[2, 3] = aten::add.Tensor(%2, %6, alpha=1)
  return %5, %7, %4
})",
        {1, {PartId(0), PartId(1)}, {{0, -1, {true, false}}, {1, -1, {true, true}}, {2, 0, {false, true}}}},
        simplified);
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].tangents == Numbers{0});
    CHECK(operators(parts[0].graph) == (simplified ? "mul.Tensor" : "mul.Tensor mul.Tensor"));
    CHECK(parts[1].tangents == Numbers{1});
    CHECK(operators(parts[1].graph) == "mul.Tensor");
    CHECK(parts[1].gradients == std::vector<int32_t>{-1, 0, 1});
  }
}

TEST_CASE("results of one part stay together") {
  const auto parts = parts_of(R"(graph(%0 : float32[4], %1 : float32[4], %2 : float32[4]) {
  %3 : float32[4] = aten::add.Tensor(%1, %2, alpha=1)
  %4 : float32[4] = aten::mul.Tensor(%3, %0)
  return %4
})",
                              {1, {PartId(7), PartId(7)}, {{0, -1, {true, true}}}});
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].tangents == Numbers{0, 1});
  CHECK(operators(parts[0].graph) == "add.Tensor mul.Tensor");
}
