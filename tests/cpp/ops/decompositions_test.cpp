// Decompositions: applied, lowered, interpreted and compared with eager's answers, which
// tests/golden/decompositions/generate.py recorded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/error.h"
#include "loop/interpreter.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"

using namespace oxy;
using loop::Array;

namespace {

struct Case {
  std::string graph;
  std::vector<std::string> inputs;
  std::vector<std::string> results;
};

std::vector<Case> read_cases() {
  std::ifstream file(fmt::format("{}/tests/golden/decompositions/cases.txt", OXYFUEL_SOURCE_DIR));
  REQUIRE(file.good());
  std::vector<Case> cases(1);
  for (std::string line; std::getline(file, line);) {
    if (line == "end") {
      cases.emplace_back();
    } else if (line.starts_with("input")) {
      cases.back().inputs.push_back(line.substr(5));
    } else if (line.starts_with("result")) {
      cases.back().results.push_back(line.substr(6));
    } else {
      cases.back().graph += line + "\n";
    }
  }
  cases.pop_back();
  return cases;
}

Array read_array(const TensorMeta& meta, const std::string& text) {
  Array array;
  array.dtype = meta.dtype;
  for (const Expr& size : meta.sizes) array.sizes.push_back(size.constant());
  std::stringstream in(text);
  for (std::string word; in >> word;) {
    if (is_floating(meta.dtype)) {
      array.floats.push_back(std::stod(word));
    } else {
      array.ints.push_back(std::stoll(word));
    }
  }
  return array;
}

// The graph with its one node replaced by what it decomposes into, or nothing if it does not.
std::optional<graph::Graph> decomposed(const graph::Graph& source) {
  graph::Graph out = source;
  const graph::Node node = source.nodes.front();
  out.nodes.clear();
  out.outputs.clear();
  const std::vector<graph::ValueId> results = ops::find(node.op->name)->decompose(out, node);
  if (results.empty()) return std::nullopt;
  for (size_t i = 0; i < results.size(); ++i) {
    CHECK((results[i] == graph::kNoValue) == (node.outputs.at(i) == graph::kNoValue));
    if (results[i] != graph::kNoValue) out.outputs.push_back({results[i]});
  }
  return out;
}

bool close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 2e-5 * std::abs(b) + 1e-6;
}

}  // namespace

TEST_CASE("decompositions compute what eager computes") {
  ops::intern_schemas();
  const std::vector<Case> cases = read_cases();
  CHECK(cases.size() > 50);
  for (const Case& c : cases) {
    CAPTURE(c.graph);
    const graph::Graph source = graph::parse(c.graph);
    const std::optional<graph::Graph> graph = decomposed(source);
    REQUIRE(graph.has_value());
    std::vector<Array> inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i)
      inputs.push_back(read_array(source.meta(source.inputs[i]), c.inputs[i]));
    const std::vector<Array> outputs = loop::interpret(loop::lower(*graph), inputs).outputs;
    REQUIRE(outputs.size() == c.results.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Array expected = read_array(source.meta(source.outputs[k].value), c.results[k]);
      REQUIRE(outputs[k].sizes == expected.sizes);
      for (size_t i = 0; i < std::max(expected.floats.size(), expected.ints.size()); ++i)
        CHECK_MESSAGE(close(outputs[k].number(i), expected.number(i)), "element " << i << " of result " << k);
    }
  }
}

TEST_CASE("a decomposition that does not apply leaves the graph as it was") {
  ops::intern_schemas();
  const graph::Graph source =
      graph::parse(R"(graph(%0 : float32[2, 3, 3], %1 : float32[2, 3, 4], %2 : float32[2, 4, 3]) {
  %3 : float32[2, 3, 3] = aten::baddbmm(%0, %1, %2, beta=1, alpha=1)
  return %3
})");
  graph::Graph copy = source;
  CHECK(ops::find("aten::baddbmm")->decompose(copy, source.nodes.front()).empty());
  CHECK(copy.nodes.size() == source.nodes.size());
  CHECK(copy.values.size() == source.values.size());
}

TEST_CASE("baddbmm without its addend is a product") {
  ops::intern_schemas();
  const graph::Graph source =
      graph::parse(R"(graph(%0 : float32[2, 3, 3], %1 : float32[2, 3, 4], %2 : float32[2, 4, 3]) {
  %3 : float32[2, 3, 3] = aten::baddbmm(%0, %1, %2, beta=0, alpha=0.125)
  return %3
})");
  const std::optional<graph::Graph> graph = decomposed(source);
  REQUIRE(graph.has_value());
  REQUIRE(graph->nodes.size() == 2);
  CHECK(graph->nodes.front().op->name == "aten::bmm");
  CHECK(graph->nodes.back().op->name == "aten::mul.Tensor");
}
