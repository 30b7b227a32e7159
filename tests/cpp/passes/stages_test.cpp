// Graphs in stages, between which the host reads what only data tell.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ops/core/registry.h"
#include "passes/staging/stages.h"

using namespace oxy;
using namespace oxy::passes;

namespace {

graph::Graph parsed(std::string_view text) {
  ops::intern_schemas();
  intern_schema("aten::_local_scalar_dense(Tensor self) -> Scalar");
  graph::Graph graph = graph::parse(text);
  graph::verify(graph, true);
  CHECK(graph::same(graph::parse(graph::print(graph)), graph));
  return graph;
}

StagedProgram cut(std::string_view text) {
  StagedProgram program = cut_into_stages(parsed(text));
  for (const Stage& stage : program.stages) {
    graph::verify(stage.graph, true);
    CHECK(!reads_data(stage.graph));
  }
  return program;
}

std::string operators(const std::vector<graph::Node>& nodes) {
  std::string names;
  for (const graph::Node& node : nodes) names += (names.empty() ? "" : " ") + node.op->name.substr(6);
  return names;
}

// "relu -> nonzero; index": the operators of each stage, and those that run behind it.
std::string described(const StagedProgram& program) {
  std::string text;
  for (const Stage& stage : program.stages) {
    if (!text.empty()) text += "; ";
    text += operators({stage.graph.nodes.begin(), stage.graph.nodes.end()});
    if (!stage.reads.empty()) text += " -> " + operators(stage.reads);
  }
  return text;
}

}  // namespace

TEST_CASE("stages: what is read is known in the next stage, and the rest is where it is read") {
  const StagedProgram program = cut(R"(
symbol u0 : id 0 in [0, 40]
graph(%0 : float32[10, 4]) {
  %1 : bool[10, 4] = aten::gt.Scalar(%0, 0)
  %2 : float32[10, 4] = aten::relu(%0)
  %3 : int64[u0, 2]{strides=[1, u0]} = aten::nonzero(%1) -> u0 = size(0, 0)
  %4 : int64[u0] = aten::select.int(%3, 1, 0)
  %5 : int64[u0] = aten::mul.Tensor(%4, 2)
  %6 : float32[10, 4] = aten::neg(%2)
  return %5, %6
})");
  CHECK(described(program) == "gt.Scalar -> nonzero; relu select.int mul.Tensor neg");
  CHECK(program.stages[1].inputs.size() == 2);  // %0 and %3: views of what crosses are made again
  CHECK(program.stages[0].spent == std::vector{graph::ValueId(1)});
}

TEST_CASE("stages: independent reads share a cut, and what follows checks runs behind them") {
  const char* const text = R"(
symbol u0 : id 0 in [-100, 100]
symbol u1 : id 1 in [-100, 100]
graph(%0 : int64[], %1 : int64[], %2 : float32[10]) {{
  aten::_local_scalar_dense(%0) -> u0{}
  aten::_local_scalar_dense(%1) -> u1
  %3 : float32[10] = aten::add.Tensor(%2, u0)
  %4 : float32[10] = aten::add.Tensor(%3, u1)
  return %4
}})";
  CHECK(described(cut(fmt::format(fmt::runtime(text), ""))) ==
        " -> _local_scalar_dense _local_scalar_dense; add.Tensor add.Tensor");
  CHECK(described(cut(fmt::format(fmt::runtime(text), " if u0 >= 0"))) ==
        " -> _local_scalar_dense;  -> _local_scalar_dense; add.Tensor add.Tensor");
}

TEST_CASE("stages: a check waits for the last of its symbols") {
  const StagedProgram program = cut(R"(
symbol u0 : id 0 in [0, 100]
symbol u1 : id 1 in [0, 100]
graph(%0 : int64[], %1 : int64[9]) {
  aten::_local_scalar_dense(%0) -> u0
  %2 : int64[9] = aten::mul.Tensor(%1, u0)
  %3 : int64[] = aten::sum(%2)
  aten::_local_scalar_dense(%3) -> u1 if u0 + -1*u1 == 0
  %4 : int64[u1] = aten::full([u1], 1, dtype=int64)
  return %4
})");
  CHECK(program.stages.size() == 3);
  CHECK(operators(program.stages[1].reads) == "_local_scalar_dense");
  // Equal from here on.
  CHECK(graph::print(program.stages[2].graph).find("u1") == std::string::npos);
}

TEST_CASE("stages: inputs are written in the last one, and effects keep their order") {
  const StagedProgram program = cut(R"(
symbol u0 : id 0 in [0, 10]
graph(%0 : float32[10]) {
  %1 : float32[10] = aten::relu(%0)
  %2 : int64[u0, 1]{strides=[1, u0]} = aten::nonzero(%0) -> u0 = size(0, 0)
  %3 : float32[u0] = aten::rand([u0], dtype=float32)
  %4 : float32[10] = aten::rand([10], dtype=float32)
  mutate input 0 = %1
  return %3, %4
})");
  CHECK(described(program) == " -> nonzero; relu rand rand");
  CHECK(program.stages[0].graph.mutations.empty());
  CHECK(program.stages[1].graph.mutations.size() == 1);
}

TEST_CASE("stages: results of reads and of earlier stages are given as they are") {
  const StagedProgram program = cut(R"(
symbol u0 : id 0 in [0, 10]
graph(%0 : float32[10]) {
  %1 : float32[10] = aten::relu(%0)
  %2 : int64[u0, 1]{strides=[1, u0]} = aten::nonzero(%1) -> u0 = size(0, 0)
  %3 : int64[1, u0]{strides=[u0, 1]} = aten::t(%2)
  return %1, %3
})");
  CHECK(described(program) == "relu -> nonzero; ");
  CHECK(program.outputs[0].value == graph::ValueId(1));
  CHECK(program.outputs[1].value == graph::ValueId(2));
  CHECK(program.stages[0].spent.empty());
}

TEST_CASE("stages: what nothing mentions is not read") {
  const char* const text = R"(
symbol u0 : id 0 in [0, 10]
graph(%0 : int64[], %1 : float32[10]) {{
  %2 : int64[] = aten::clone(%0)
  aten::_local_scalar_dense(%2) -> u0{}
  %3 : float32[10] = aten::relu(%1)
  return %3
}})";
  const auto left = [&](std::string_view rest) {
    const graph::Graph graph = without_unneeded_reads(parsed(fmt::format(fmt::runtime(text), rest)));
    return operators({graph.nodes.begin(), graph.nodes.end()});
  };
  CHECK(left("") == "relu");
  CHECK(left(" wanted") == "clone _local_scalar_dense relu");
  CHECK(left(" if u0 != 0") == "clone _local_scalar_dense relu");
}
