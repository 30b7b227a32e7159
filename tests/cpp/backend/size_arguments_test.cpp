// Kernels that differ in integers alone: which of these become arguments, and that the results stay right.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cpu/print/expression_text.h"
#include "backend/graph_checks.h"
#include "base/error.h"

using namespace oxy;
using namespace oxy::testing;

namespace {

const plan::Launch& launch(const plan::Plan& plan, size_t n) {
  for (const plan::Step& step : plan.steps)
    if (const auto* found = std::get_if<plan::Launch>(&step); found && n-- == 0) return *found;
  throw InternalError("the plan has fewer launches");
}

plan::Plan scheduled(const std::string& graph, backend::cpu::Isa isa = backend::cpu::Isa::Avx512) {
  backend::cpu::Target target = backend::cpu::make_target(isa);
  return oxy::testing::scheduled(oxy::testing::lowered(graph), target, {});
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

// A join of `count` pieces of 32 channels.
std::string join_of(int count) {
  std::string inputs, pieces;
  for (int k = 0; k < count; ++k) {
    inputs += fmt::format("{}%{}: float32[2, 32, 5, 7]", k ? ", " : "", k);
    pieces += fmt::format("{}%{}", k ? ", " : "", k);
  }
  return fmt::format("graph({0}) {{\n  %50: float32[2, {1}, 5, 7] = aten::cat([{2}], 1)\n  return %50\n}}",
                     inputs, 32 * count, pieces);
}

// The same, of pieces in channels-last.
std::string transposing_join_of(int count) {
  std::string text = join_of(count);
  const std::string_view plain = "float32[2, 32, 5, 7]";
  for (size_t at = text.find(plain); at != std::string::npos; at = text.find(plain, at + 1))
    text.insert(at + plain.size(), "{strides=[1120, 1, 224, 32]}");
  return text;
}

const std::string kSoftmax = "aten::_softmax({x}, -1, False)";

}  // namespace

TEST_CASE("size arguments: pieces of a join share a kernel") {
  for (const std::string& graph : {join_of(6), transposing_join_of(6)}) {
    CAPTURE(graph);
    const plan::Plan plan = scheduled(graph);
    CHECK(plan.kernels.size() == 2);  // of the first piece, and of one with an offset
    CHECK(launch(plan, 0).sizes.empty());
    CHECK_FALSE(launch(plan, 1).sizes.empty());
    CHECK(launch(plan, 1).kernel == launch(plan, 5).kernel);
    CHECK_FALSE(launch(plan, 1).sizes == launch(plan, 5).sizes);
    check_graph(graph);
  }
}

TEST_CASE("size arguments: few kernels of a kind keep their constants") {
  const plan::Plan plan = scheduled(join_of(4));
  CHECK(plan.kernels.size() == 4);
  for (size_t k = 0; k < 4; ++k) CHECK(launch(plan, k).sizes.empty());
  CHECK(scheduled(one_each(kSoftmax, {"5, 768", "3, 768"})).kernels.size() == 1);
}

TEST_CASE("size arguments: extents of loops over lanes stay constants") {
  const std::string graph = one_each(kSoftmax, {"5, 768", "5, 1003", "5, 1024", "5, 2048", "5, 2064"});
  CHECK(scheduled(graph).kernels.size() == 5);
  check_graph(graph);
}

TEST_CASE("size arguments: sums by blocks and sums without") {
  const std::vector<std::string> all = {"20", "24", "28", "32", "33", "61", "62", "63"};
  std::string inputs, nodes, results;
  for (size_t k = 0; k < all.size(); ++k) {
    inputs += fmt::format("{}%{}: float32[{}, 16384]", k ? ", " : "", k, all[k]);
    nodes += fmt::format("  %{}: float32[16384] = aten::sum.dim_IntList(%{}, [0], False, dtype=None)\n",
                         100 + k, k);
    results += fmt::format("{}%{}", k ? ", " : "", 100 + k);
  }
  const std::string graph = fmt::format("graph({}) {{\n{}  return {}\n}}", inputs, nodes, results);
  const plan::Plan plan = scheduled(graph);
  CHECK(plan.kernels.size() == 2);
  CHECK(launch(plan, 0).kernel == launch(plan, 3).kernel);
  CHECK(launch(plan, 4).kernel == launch(plan, 7).kernel);
  check_graph(graph, {1e-4, 1e-4});
}

TEST_CASE("size arguments: several loops that threads share") {
  std::string inputs, nodes, results;
  for (int k = 0; k < 4; ++k) {
    const int rows = 3 + 2 * k;
    const std::string layout =
        fmt::format("float32[3, 72, {0}, 5]{{strides=[{1}, 1, 360, 72]}}", rows, 360 * rows);
    inputs += fmt::format("{0}%{1}: {2}, %{3}: float32[3, 72, 1, 1]", k ? ", " : "", k, layout, 10 + k);
    nodes += fmt::format("  %{}: {} = aten::mul.Tensor(%{}, %{})\n", 100 + k, layout, k, 10 + k);
    results += fmt::format("{}%{}", k ? ", " : "", 100 + k);
  }
  const std::string graph = fmt::format("graph({}) {{\n{}  return {}\n}}", inputs, nodes, results);
  const plan::Plan plan = scheduled(graph);
  CHECK(plan.kernels.size() == 1);
  CHECK(plan.kernels.front().source.find("o / ") == std::string::npos);  // no division at every iteration
  check_graph(graph);
}

TEST_CASE("size arguments: bounds of indices") {
  std::string inputs, nodes, results;
  for (int k = 0; k < 4; ++k) {
    inputs += fmt::format("{}%{}: float32[{}, 256], %{}: int64[6]", k ? ", " : "", k, 50 + k, 10 + k);
    nodes += fmt::format(
        "  %{0}: float32[6, 256] = aten::embedding(%{1}, %{2})\n"
        "  %{3}: float32[6, 256] = aten::_softmax(%{0}, -1, False)\n",
        100 + k, k, 10 + k, 200 + k);
    results += fmt::format("{}%{}", k ? ", " : "", 200 + k);
  }
  check_graph(fmt::format("graph({}) {{\n{}  return {}\n}}", inputs, nodes, results));
}

TEST_CASE("size arguments: windows keep their constants") {
  std::string inputs, nodes, results;
  for (int k = 0; k < 4; ++k) {
    const int side = 8 + 4 * k;
    inputs += fmt::format("{0}%{1}: float32[2, 8, {2}, {2}]", k ? ", " : "", k, side);
    nodes += fmt::format(
        "  %{0}: float32[2, 8, {2}, {2}], %{1}: int8[2, 8, {2}, {2}] = "
        "oxyfuel::max_pool2d_places(%{3}, [3, 3], [2, 2], [1, 1], [1, 1], False)\n",
        100 + k, 200 + k, side / 2, k);
    results += fmt::format("{}%{}", k ? ", " : "", 100 + k);
  }
  check_graph(fmt::format("graph({}) {{\n{}  return {}\n}}", inputs, nodes, results));
}

TEST_CASE("size arguments: rows of tiles") {
  std::string inputs, nodes, results;
  for (int k = 0; k < 4; ++k) {
    const int rows = 150 + 70 * k;
    inputs += fmt::format("{}%{}: float32[3, 20, {}]", k ? ", " : "", k, rows);
    nodes += fmt::format(
        "  %{0}: float32[3, {1}, 20]{{strides=[{2}, 1, {1}]}} = aten::permute(%{3}, [0, 2, 1])\n"
        "  %{4}: float32[3, {1}, 20] = aten::clone(%{0}, memory_format=contiguous)\n",
        100 + k, rows, 20 * rows, k, 200 + k);
    results += fmt::format("{}%{}", k ? ", " : "", 200 + k);
  }
  const std::string graph = fmt::format("graph({}) {{\n{}  return {}\n}}", inputs, nodes, results);
  CHECK(scheduled(graph).kernels.size() == 1);
  check_graph(graph);
}

TEST_CASE("size arguments: a product that divides stands in parentheses") {
  const sym::Expr a = sym::Expr::variable("a", 1, {0, 1000}), n = sym::Expr::variable("n", 2, {1, 9});
  const auto text = [](const sym::Expr& e) {
    return backend::cpu::expression_text(
        e,
        [](const sym::Expr& v) {
          return v.kind() == sym::Kind::Variable ? v.variable_name() : std::string();
        },
        [](const char*) {});
  };
  CHECK(text(sym::floordiv(a, 8 * n)) == "(a / (8 * n))");
  CHECK(text(sym::mod(a, 8 * n)) == "(a % (8 * n))");
}
