// Kernels that differ in integers alone: which of these become arguments, and that the results stay right.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "sched_graph_checks.h"

using namespace oxy;
using namespace oxy::testing;

namespace {

const plan::Launch& launch(const plan::Plan& plan, size_t n) {
  for (const plan::Step& step : plan.steps)
    if (const auto* found = std::get_if<plan::Launch>(&step); found && n-- == 0) return *found;
  throw InternalError("the plan has fewer launches");
}

plan::Plan scheduled(const std::string& graph, codegen::Isa isa = codegen::Isa::Avx512) {
  codegen::Target target = codegen::make_target(isa);
  return sched::schedule(lowered(graph), target, {});
}

// `op` of a tensor of each of `sizes`, each a result.
std::string one_each(const std::string& op, const std::vector<std::string>& sizes) {
  std::string inputs, nodes, results;
  for (size_t k = 0; k < sizes.size(); ++k) {
    inputs += fmt::format("{}%{}: float32[{}]", k ? ", " : "", k, sizes[k]);
    nodes += fmt::format("  %{}: float32[{}] = {}\n", 100 + k, sizes[k],
                         fmt::format(fmt::runtime(op), fmt::arg("x", fmt::format("%{}", k))));
    results += fmt::format("{}%{}", k ? ", " : "", 100 + k);
  }
  return fmt::format("graph({}) {{\n{}  return {}\n}}", inputs, nodes, results);
}

const std::string kSoftmax = "aten::_softmax({x}, -1, False)";

}  // namespace

TEST_CASE("size arguments: rows of several lengths share a kernel") {
  const std::string graph = one_each(kSoftmax, {"5, 768", "3, 1024", "2, 4096"});
  CHECK(scheduled(graph).kernels.size() == 1);
  check_graph(graph);
}

TEST_CASE("size arguments: a kernel of one size keeps its constants") {
  const plan::Plan plan = scheduled(one_each(kSoftmax, {"5, 768", "3, 768"}));
  CHECK(plan.kernels.size() == 1);
  CHECK(launch(plan, 0).sizes.empty());
  CHECK(plan.kernels[0].source.find("<= 768") != std::string::npos);
}

TEST_CASE("size arguments: lengths that are walked in other ways have kernels of their own") {
  // Unrolled; whole vectors; some elements over; whole vectors again.
  const std::string graph = one_each(kSoftmax, {"5, 64", "5, 768", "5, 1003", "5, 1024"});
  const plan::Plan plan = scheduled(graph);
  CHECK(plan.kernels.size() == 3);
  CHECK(launch(plan, 0).sizes.empty());
  CHECK_FALSE(launch(plan, 1).sizes.empty());
  CHECK(launch(plan, 2).sizes.empty());
  CHECK(launch(plan, 1).kernel == launch(plan, 3).kernel);
  check_graph(graph);
}

TEST_CASE("size arguments: sums by blocks and sums without") {
  const std::string sums = R"(graph(%0: float32[300, 2048], %1: float32[500, 2048], %2: float32[700, 2048], %3: float32[900, 2048]) {
  %4: float32[2048] = aten::sum.dim_IntList(%0, [0], False, dtype=None)
  %5: float32[2048] = aten::sum.dim_IntList(%1, [0], False, dtype=None)
  %6: float32[2048] = aten::sum.dim_IntList(%2, [0], False, dtype=None)
  %7: float32[2048] = aten::sum.dim_IntList(%3, [0], False, dtype=None)
  return %4, %5, %6, %7
})";
  const plan::Plan plan = scheduled(sums);
  CHECK(plan.kernels.size() == 2);
  CHECK(launch(plan, 0).kernel == launch(plan, 1).kernel);
  CHECK(launch(plan, 2).kernel == launch(plan, 3).kernel);
  check_graph(sums, {1e-4, 1e-4});
}

TEST_CASE("size arguments: pieces of joined tensors") {
  const std::string graph = R"(graph(%0: float32[2, 32, 5, 7], %1: float32[2, 32, 5, 7], %2: float32[2, 32, 5, 7], %3: float32[2, 32, 5, 7], %4: float32[2, 32, 5, 7]) {
  %5: float32[2, 160, 5, 7] = aten::cat([%0, %1, %2, %3, %4], 1)
  %6: float32[2, 128, 5, 7] = aten::cat([%4, %3, %2, %1], 1)
  return %5, %6
})";
  const plan::Plan plan = scheduled(graph);
  CHECK(plan.kernels.size() == 2);  // a first piece and one with an offset
  check_graph(graph);
}

TEST_CASE("size arguments: several loops that threads share") {
  const std::string graph = R"(graph(%0: float32[3, 70, 5, 96], %1: float32[3, 5, 70, 96], %2: float32[2, 30, 7, 160], %3: float32[2, 7, 30, 160]) {
  %4: float32[3, 5, 70, 96]{strides=[33600, 96, 480, 1]} = aten::permute(%0, [0, 2, 1, 3])
  %5: float32[3, 5, 70, 96] = aten::add.Tensor(%4, %1)
  %6: float32[2, 7, 30, 160]{strides=[33600, 160, 1120, 1]} = aten::permute(%2, [0, 2, 1, 3])
  %7: float32[2, 7, 30, 160] = aten::add.Tensor(%6, %3)
  %8: float32[3, 5, 70, 96] = aten::_softmax(%5, -1, False)
  return %5, %7, %8
})";
  check_graph(graph);
}

TEST_CASE("size arguments: bounds of indices") {
  const std::string graph = R"(graph(%0: float32[50, 256], %1: int64[6], %2: float32[40, 512], %3: int64[9]) {
  %4: float32[6, 256] = aten::embedding(%0, %1)
  %5: float32[6, 256] = aten::_softmax(%4, -1, False)
  %6: float32[9, 512] = aten::embedding(%2, %3)
  %7: float32[9, 512] = aten::_softmax(%6, -1, False)
  return %5, %7
})";
  check_graph(graph);
}
