// Every shape rule against eager's answers, which tests/golden/shapes/generate.py recorded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "ops/registry.h"

using namespace oxy;

namespace {

graph::Graph read(std::string_view family) {
  ops::intern_schemas();
  std::ifstream file(fmt::format("{}/tests/golden/shapes/{}.graph", OXYFUEL_SOURCE_DIR, family));
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return graph::parse(text.str());
}

std::string describe(const std::vector<TensorMeta>& metas) {
  std::string text;
  for (const TensorMeta& m : metas) {
    std::string strides;
    for (const Expr& s : m.strides) strides += s.str() + ",";
    text += fmt::format("{} <{}> +{}; ", str(m), strides, m.storage_offset.str());
  }
  return text;
}

std::string node_text(const graph::Graph& g, const graph::Node& node) {
  std::string text = node.op->name + " of ";
  graph::for_each_input(node, [&](graph::ValueId id) { text += describe({g.meta(id)}); });
  for (const graph::Argument& arg : node.args) {
    if (const auto* e = std::get_if<Expr>(&arg)) text += e->str() + " ";
    if (const auto* l = std::get_if<std::vector<Expr>>(&arg)) {
      text += "[";
      for (const Expr& e : *l) text += e.str() + ",";
      text += "] ";
    }
  }
  return text;
}

void check_family(std::string_view family) {
  const graph::Graph g = read(family);
  const std::function<const TensorMeta&(graph::ValueId)> meta_of =
      [&](graph::ValueId id) -> const TensorMeta& { return g.meta(id); };
  std::map<std::string, int> shown;
  int wrong = 0;
  for (const graph::Node& node : g.nodes) {
    const ops::OperatorEntry* entry = ops::find(node.op->name);
    REQUIRE_MESSAGE(entry != nullptr, node.op->name);
    std::vector<TensorMeta> expected;
    for (graph::ValueId id : node.outputs) expected.push_back(g.meta(id));
    std::string answer;
    try {
      const std::vector<TensorMeta> got =
          entry->shape(ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32));
      if (got == expected) continue;
      answer = describe(got);
    } catch (const Unsupported& refused) {
      answer = refused.reason();
    }
    ++wrong;
    if (++shown[node.op->name] <= 2)
      MESSAGE(node_text(g, node) << "\n  eager: " << describe(expected) << "\n  rule:  " << answer);
  }
  for (const auto& [name, count] : shown) MESSAGE(name << ": " << count << " wrong");
  CHECK(wrong == 0);
  CHECK(g.nodes.size() > 5);
}

}  // namespace

TEST_CASE("shape rules agree with eager: pointwise") {
  check_family("pointwise");
}
TEST_CASE("shape rules agree with eager: comparison") {
  check_family("comparison");
}
TEST_CASE("shape rules agree with eager: reductions") {
  check_family("reductions");
}
TEST_CASE("shape rules agree with eager: views") {
  check_family("views");
}
TEST_CASE("shape rules agree with eager: creation") {
  check_family("creation");
}
TEST_CASE("shape rules agree with eager: random") {
  check_family("random");
}
TEST_CASE("shape rules agree with eager: indexing") {
  check_family("indexing");
}
TEST_CASE("shape rules agree with eager: normalization") {
  check_family("normalization");
}
TEST_CASE("shape rules agree with eager: matmul") {
  check_family("matmul");
}
TEST_CASE("shape rules agree with eager: convolution") {
  check_family("convolution");
}
TEST_CASE("shape rules agree with eager: pooling") {
  check_family("pooling");
}
TEST_CASE("shape rules agree with eager: attention") {
  check_family("attention");
}
TEST_CASE("shape rules agree with eager: loss") {
  check_family("loss");
}
