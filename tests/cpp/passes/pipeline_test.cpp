#include <doctest/doctest.h>
#include <fmt/format.h>

#include "aten/operators.h"
#include "base/config.h"
#include "base/error.h"
#include "growth.h"
#include "ops/core/registry.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rewriting/rewrite.h"
#include "passes/simplification/accumulate_embeddings.h"
#include "passes/simplification/dead_code.h"

using namespace oxy;
using namespace oxy::passes;

namespace {

TensorMeta matrix(int64_t rows, int64_t columns) {
  return contiguous_meta(DType::Float32, Device{}, {rows, columns});
}

ValueId emit(Graph& g, const OperatorSchema* op, std::vector<Argument> args, TensorMeta meta) {
  NodeId node = g.add_node(op, std::move(args), {std::move(meta)});
  return g.nodes[node].outputs.front();
}

const OperatorSchema* addmm() {
  return intern_schema(
      "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor");
}

// A chain of n links, each with work for several passes: views that cancel, equal calls, neutral elements, a
// linear.
Graph chain(int n) {
  Graph g;
  ValueId x = g.add_input(matrix(4, 8));
  ValueId weight = g.add_constant(matrix(8, 8), 0);
  ValueId bias = g.add_constant(contiguous_meta(DType::Float32, Device{}, {8}), 1);
  for (int i = 0; i < n; ++i) {
    ValueId flat = emit(g, op::view(), {ValueRef{x}, std::vector<Expr>{32}},
                        contiguous_meta(DType::Float32, Device{}, {32}));
    ValueId back = emit(g, op::view(), {ValueRef{flat}, std::vector<Expr>{4, 8}}, matrix(4, 8));
    ValueId one = emit(g, op::mul(), {ValueRef{back}, 1.0}, matrix(4, 8));
    ValueId a = emit(g, op::mul(), {ValueRef{one}, 0.5}, matrix(4, 8));
    ValueId b = emit(g, op::mul(), {ValueRef{x}, 0.5}, matrix(4, 8));
    x = emit(g, op::add(), {ValueRef{a}, ValueRef{b}, Expr(1)}, matrix(4, 8));
    if (i % 10 == 0)
      x = emit(g, addmm(), {ValueRef{bias}, ValueRef{x}, ValueRef{weight}, Expr(1), Expr(1)}, matrix(4, 8));
  }
  g.outputs.push_back({x});
  return g;
}

Options packing_options() {
  Options options;
  options.evaluate_constants = [next =
                                    100](const Graph& part) mutable -> std::optional<std::vector<int32_t>> {
    std::vector<int32_t> handles(part.outputs.size());
    for (int32_t& handle : handles) handle = next++;
    return handles;
  };
  options.linear.pays = [](const LinearSite&) { return true; };
  options.linear.fuses = [](std::string_view, bool) { return true; };
  return options;
}

double seconds_of(int n) {
  Graph g = chain(n);
  return processor_seconds([&] { run_passes(std::move(g), {}); });
}

class Strict {
 public:
  Strict() : before_(strict()) { set_strict(true); }
  ~Strict() { set_strict(before_); }

 private:
  bool before_;
};

}  // namespace

TEST_CASE("passes: the pipeline leaves a small legal graph") {
  Strict on;
  Graph out = run_passes(chain(20), packing_options());
  CHECK_NOTHROW(graph::verify(out, true));
  // A link is mul and add; the two linears stay; weights are packed once a shape.
  CHECK(out.nodes.size() == 42);
  CHECK(out.constants.size() == 2);
}

TEST_CASE("passes: running the pipeline again changes nothing") {
  Strict on;
  Graph once = run_passes(chain(20), {});
  Graph twice = run_passes(once, {});
  CHECK(graph::print(once) == graph::print(twice));
}

TEST_CASE("passes: long chains take time in proportion and no stack") {
  check_growth(seconds_of, 5000);
}

TEST_CASE("passes: an output that is the input becomes a copy") {
  Graph g;
  ValueId x = g.add_input(matrix(4, 8));
  ValueId y = emit(g, op::clone(), {ValueRef{x}, graph::None{}}, matrix(4, 8));
  g.outputs = {{y}};
  Graph out = run_passes(g, {});
  REQUIRE(out.nodes.size() == 1);
  CHECK(out.nodes.front().op == op::clone());
}

TEST_CASE("passes: constants that cannot be evaluated stay as they are") {
  Graph g;
  ValueId c = g.add_constant(matrix(4, 8), 0);
  ValueId y = emit(g, op::mul(), {ValueRef{c}, 2.0}, matrix(4, 8));
  g.outputs = {{y}};
  Options options;
  options.evaluate_constants = [](const Graph&) -> std::optional<std::vector<int32_t>> {
    return std::nullopt;
  };
  CHECK(run_passes(g, options).nodes.size() == 1);
}

TEST_CASE("passes: strict mode names the pass whose result is broken") {
  Strict on;
  Graph g;
  ValueId x = g.add_input(matrix(4, 8));
  const ValueId y = emit(g, op::mul(), {ValueRef{x}}, matrix(4, 8));  // an argument is missing
  emit(g, op::tanh(), {ValueRef{x}}, matrix(4, 8));
  g.outputs = {{y}};
  try {
    run_passes(g, {});
    FAIL("no error");
  } catch (const InternalError& error) {
    CHECK(std::string(error.what()).find("after passes.dead_code") != std::string::npos);
  }
}

TEST_CASE("gradients of a weight that is embedded twice and multiplied by are collected in one table") {
  ops::intern_schemas();
  const auto collected = [](std::string_view text) {
    const graph::Graph result = accumulate_embeddings(graph::parse(text));
    graph::verify(result, true);
    return graph::print(remove_dead_code(result));
  };
  const std::string text = collected(R"(graph(%0: float32[9, 4], %1: float32[2, 3, 4], %2: int64[2, 3]) {
  %3: float32[9, 4] = aten::embedding_dense_backward(%1, %2, 9, -1, False)
  %4: float32[9, 4] = aten::add.Tensor(%0, %3, alpha=1)
  %5: float32[9, 4] = aten::embedding_dense_backward(%1, %2, 9, -1, False)
  %6: float32[9, 4] = aten::add.Tensor(%5, %4, alpha=1)
  return %6
})");
  CHECK(text.find("embedding_dense_backward") == std::string::npos);
  CHECK(text.find("index_put(%0, [%2], %1, True)") != std::string::npos);
  for (const std::string_view rest : {"9, 3, False", "9, -1, True"})  // rows that do not count, or not once
    CHECK(collected(fmt::format(R"(graph(%0: float32[9, 4], %1: float32[2, 3, 4], %2: int64[2, 3]) {{
  %3: float32[9, 4] = aten::embedding_dense_backward(%1, %2, {})
  %4: float32[9, 4] = aten::add.Tensor(%0, %3, alpha=1)
  return %4
}})",
                                rest))
              .find("index_put") == std::string::npos);
}
