// Every shape rule against eager's answers, which tests/golden/shapes/generate.py recorded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "ops/core/registry.h"
#include "ops/shape_cases.h"

using namespace oxy;
using testing::describe;

namespace {

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

// Names of operators: `left_out` are not looked at, and rules of `may_refuse` give eager's answer or none.
void check_calls(const graph::Graph& g, const std::set<std::string>& left_out = {},
                 const std::set<std::string>& may_refuse = {}) {
  const std::function<const TensorMeta&(graph::ValueId)> meta_of =
      [&](graph::ValueId id) -> const TensorMeta& { return g.meta(id); };
  std::map<std::string, int> shown;
  int wrong = 0;
  for (const graph::Node& node : g.nodes) {
    if (left_out.contains(node.op->name)) continue;
    const ops::OperatorEntry* entry = ops::find(node.op->name);
    REQUIRE_MESSAGE(entry != nullptr, node.op->name);
    const std::vector<TensorMeta> expected = testing::results_of_eager(g, node);
    std::string answer;
    try {
      const std::vector<TensorMeta> got =
          testing::results_by_rule(node, ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32));
      if (got == expected) continue;
      answer = describe(got);
    } catch (const Unsupported& refused) {
      if (may_refuse.contains(node.op->name)) continue;
      answer = refused.reason();
    }
    ++wrong;
    if (++shown[node.op->name] <= 2)
      MESSAGE(node_text(g, node) << "\n  eager: " << describe(expected) << "\n  rule:  " << answer);
  }
  for (const auto& [name, count] : shown) MESSAGE(name << ": " << count << " wrong");
  CHECK(wrong == 0);
}

void check_family(std::string_view family) {
  const graph::Graph g = testing::shape_cases(family);
  check_calls(g);
  CHECK(g.nodes.size() > 5);
}

// Operators whose results on a GPU depend on the library that PyTorch chooses there. Their rules refuse, so
// that PyTorch's meta kernels answer.
std::set<std::string> left_to_pytorch() {
  return {"aten::_embedding_bag", "aten::_embedding_bag_forward_only",
          "aten::_linalg_svd",    "aten::_embedding_bag_dense_backward",
          "aten::linalg_eig",     "aten::linalg_lu",
          "aten::lu_unpack",      "aten::linalg_pinv.atol_rtol_tensor",
          "aten::linalg_lstsq",   "aten::_fft_r2c",
          "aten::_fft_c2c",       "aten::_fft_c2r"};
}

void move_to_gpu(graph::Graph& g) {
  for (graph::Value& value : g.values) {
    TensorMeta meta = *value.meta;
    meta.device = {Device::Kind::Cuda, 0};
    value.meta = meta;
  }
}

graph::Graph shape_cases_on_gpu(const std::string& file) {
  graph::Graph g = testing::shape_cases(file);
  move_to_gpu(g);
  return g;
}

// Of the whole family: the operators that a GPU answers otherwise than the CPU have calls of their own.
void check_family_on_gpu(const std::string& family) {
  std::set<std::string> left_out;
  if (std::filesystem::exists(
          fmt::format("{}/tests/golden/shapes/gpu/{}.graph", OXYFUEL_SOURCE_DIR, family))) {
    const graph::Graph own = shape_cases_on_gpu("gpu/" + family);
    check_calls(own, {}, left_to_pytorch());
    for (const graph::Node& node : own.nodes) left_out.insert(node.op->name);
  }
  check_calls(shape_cases_on_gpu(family), left_out, left_to_pytorch());
}

constexpr int64_t kStandIn = 5;  // the size that becomes a symbol
const Expr& symbol() {
  static const Expr n = Expr::variable("n", 77001, {2, 1000});
  return n;
}

// The tensor with a symbol for every size 5; nothing if it is not contiguous.
std::optional<TensorMeta> with_symbol(TensorMeta meta) {
  if (meta.strides != contiguous_strides(meta.sizes) || !(meta.storage_offset == Expr(0)))
    return std::nullopt;
  for (Expr& size : meta.sizes)
    if (size == Expr(kStandIn)) size = symbol();
  meta.strides = contiguous_strides(meta.sizes);
  return meta;
}

TensorMeta without_symbol(TensorMeta meta) {
  const auto known = [](const Expr& e) {
    return sym::substitute(e, [](int64_t) { return std::optional<Expr>(Expr(kStandIn)); });
  };
  for (Expr& size : meta.sizes) size = known(size);
  for (Expr& stride : meta.strides) stride = known(stride);
  meta.storage_offset = known(meta.storage_offset);
  return meta;
}

bool mentions_stand_in(const graph::Node& node) {
  for (const graph::Argument& arg : node.args)
    if (const auto* list = std::get_if<std::vector<Expr>>(&arg))
      if (std::find(list->begin(), list->end(), Expr(kStandIn)) != list->end()) return true;
  return false;
}

struct SymbolicCount {
  int covered = 0;
  int refused = 0;
};

// Rules over a symbolic size, with the size put in afterwards, must say what they say of the size itself.
SymbolicCount check_symbolic(std::string_view family) {
  const graph::Graph g = testing::shape_cases(family);
  SymbolicCount count;
  for (const graph::Node& node : g.nodes) {
    std::map<graph::ValueId, TensorMeta> inputs;
    bool usable = !mentions_stand_in(node);
    bool symbolic = false;
    graph::for_each_input(node, [&](graph::ValueId id) {
      const std::optional<TensorMeta> meta = with_symbol(g.meta(id));
      usable &= meta.has_value();
      if (!meta) return;
      symbolic |= !(*meta == g.meta(id));
      inputs.emplace(id, *meta);
    });
    if (!usable || !symbolic) continue;
    const std::function<const TensorMeta&(graph::ValueId)> meta_of =
        [&](graph::ValueId id) -> const TensorMeta& { return inputs.at(id); };
    const std::vector<TensorMeta> expected = testing::results_of_eager(g, node);
    std::vector<TensorMeta> got;
    try {
      got = testing::results_by_rule(node, ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32));
    } catch (const Unsupported&) {
      ++count.refused;
      continue;
    }
    ++count.covered;
    for (TensorMeta& meta : got) meta = without_symbol(std::move(meta));
    CHECK_MESSAGE(got == expected, node_text(g, node)
                                       << " eager: " << describe(expected) << " rule: " << describe(got));
  }
  return count;
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
TEST_CASE("shape rules agree with eager: linear algebra") {
  check_family("linear_algebra");
}
TEST_CASE("shape rules agree with eager: Fourier transforms") {
  check_family("fourier");
}

TEST_CASE("shape rules agree with eager on a GPU") {
  for (const std::string family :
       {"pointwise", "comparison", "reductions", "views", "indexing", "normalization", "matmul", "pooling",
        "convolution", "loss", "linear_algebra", "fourier"}) {
    CAPTURE(family);
    check_family_on_gpu(family);
  }
  check_calls(shape_cases_on_gpu("gpu/attention"));
}

TEST_CASE("shape rules serve symbolic sizes") {
  for (const std::string family :
       {"pointwise", "comparison", "reductions", "views", "creation", "indexing", "normalization", "matmul",
        "pooling", "convolution", "loss", "attention", "linear_algebra", "fourier"}) {
    CAPTURE(family);
    const SymbolicCount count = check_symbolic(family);
    CHECK(count.covered > 0);
    CHECK(count.covered >= 2 * count.refused);
  }
}

TEST_CASE("an in-place operator keeps its argument, or refuses what eager refuses") {
  ops::intern_schemas();
  const graph::Graph g =
      graph::parse(R"(graph(%0 : float32[2, 3]{strides=[1, 2]}, %1 : float32[3], %2 : int64[2, 3],
    %3 : float32[4, 2, 3]) {
  %4 : float32[2, 3]{strides=[1, 2]} = aten::add_.Tensor(%0, %1)
  %5 : int64[2, 3] = aten::add_.Tensor(%2, %1)
  %6 : float32[2, 3] = aten::mul_.Tensor(%0, %3)
  %7 : float32[2, 3]{strides=[1, 2]} = aten::relu_(%0)
  return %4
})");
  const std::function<const TensorMeta&(graph::ValueId)> meta_of =
      [&](graph::ValueId id) -> const TensorMeta& { return g.meta(id); };
  const auto apply = [&](int node_number) {
    const graph::Node& node = g.nodes[graph::NodeId(node_number)];
    return ops::find(node.op->name)->shape(ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32));
  };
  CHECK(apply(0) == std::vector<TensorMeta>{g.meta(g.inputs[0])});
  CHECK_THROWS_AS(apply(1), Unsupported);  // a float result does not fit into integers
  CHECK_THROWS_AS(apply(2), Unsupported);  // nor a larger one
  CHECK(apply(3) == std::vector<TensorMeta>{g.meta(g.inputs[0])});
}
