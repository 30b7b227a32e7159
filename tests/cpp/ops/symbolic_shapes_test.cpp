// Every shape rule on symbols beside itself on numbers: all cases of tests/golden/shapes, with a symbol for
// each size.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "aten/strides_that_count.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "ops/shape_cases.h"
#include "sym/environment/shape_environment.h"

using namespace oxy;

namespace {

class Questions final : public ops::SizeQuestions {
 public:
  explicit Questions(sym::ShapeEnvironment& environment) : environment_(environment) {}
  bool decide(const sym::Condition& question) const override { return environment_.decide(question, {}); }
  bool decide_general(const sym::Condition& question) const override {
    return environment_.decide_general(question, {});
  }
  std::optional<bool> at_hand(const sym::Condition& question) const override {
    return environment_.hint(question);
  }
  int64_t specialise(const Expr& e) const override { return environment_.specialise(e, {}); }

 private:
  sym::ShapeEnvironment& environment_;
};

sym::Origin named(std::string name) {
  sym::Origin origin;
  origin.name = std::move(name);
  return origin;
}

// The tensor with a symbol for each size, laid out in the same order; itself if it has gaps or overlaps.
TensorMeta with_symbols(sym::ShapeEnvironment& environment, const TensorMeta& meta) {
  std::vector<size_t> order(meta.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return meta.strides[a].constant() > meta.strides[b].constant(); });
  TensorMeta result = meta;
  std::vector<Expr> ordered;
  for (const size_t d : order) ordered.push_back(meta.sizes[d]);
  const std::vector<Expr> dense = contiguous_strides(ordered);
  for (size_t i = 0; i < order.size(); ++i)
    if (!(dense[i] == meta.strides[order[i]])) return meta;
  for (size_t i = 0; i < order.size(); ++i)
    ordered[i] =
        environment.admit(sym::SymbolKind::Size, named(fmt::format("s{}", environment.symbols().size())),
                          ordered[i].constant());
  const std::vector<Expr> strides = contiguous_strides(ordered);
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[order[i]] = ordered[i];
    result.strides[order[i]] = strides[i];
  }
  return result;
}

using Values = std::vector<int64_t>;  // by symbol

TensorMeta with_values(TensorMeta meta, const Values& values) {
  const auto replace = [&](Expr& e) {
    e = sym::evaluate(e, [&](int64_t id) { return std::optional(values.at(static_cast<size_t>(id))); });
  };
  for (Expr& size : meta.sizes) replace(size);
  for (Expr& stride : meta.strides) replace(stride);
  replace(meta.storage_offset);
  return meta;
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

// Whether a call with these values is served, as the guards' program tells.
bool hold(const std::vector<sym::Demand>& guards, const Values& values) {
  const auto value = [&](int64_t id) { return std::optional(values.at(static_cast<size_t>(id))); };
  try {
    return std::ranges::all_of(guards, [&](const sym::Demand& d) { return evaluate(d.condition, value); });
  } catch (const sym::ArithmeticError&) {
    return false;
  }
}

struct Counts {
  int covered = 0;
  int refused = 0;
  int compared = 0;
  int guards = 0;
  std::map<std::string, int> wrong_of;  // by operator
};

// What the rule says of these metadata; nothing if it refuses them.
std::optional<std::vector<TensorMeta>> apply(const graph::Node& node,
                                             const std::map<graph::ValueId, TensorMeta>& inputs,
                                             const ops::SizeQuestions* questions) {
  const std::function<const TensorMeta&(graph::ValueId)> meta_of =
      [&](graph::ValueId id) -> const TensorMeta& { return inputs.at(id); };
  try {
    return ops::find(node.op->name)
        ->shape(ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32, false, questions));
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

void check_node(const graph::Graph& g, const graph::Node& node, Counts& counts,
                std::map<std::string, int>& refused) {
  sym::ShapeEnvironment environment;
  const Questions questions(environment);
  std::map<graph::ValueId, TensorMeta> inputs;
  graph::for_each_input(node, [&](graph::ValueId id) {
    if (!inputs.contains(id)) inputs.emplace(id, with_symbols(environment, g.meta(id)));
  });
  if (environment.symbols().empty()) return;
  const auto symbolic = apply(node, inputs, &questions);
  if (!symbolic) {
    ++counts.refused;
    ++refused[node.op->name];
    return;
  }
  ++counts.covered;
  Values at_hand;
  for (const sym::Symbol& symbol : environment.symbols()) at_hand.push_back(*symbol.hint);
  std::vector<int64_t> different = at_hand;
  std::ranges::sort(different);
  different.erase(std::ranges::unique(different).begin(), different.end());
  // One size at a time becomes another one, wherever it stands.
  std::vector<Values> tried{at_hand};
  for (const int64_t size : different)
    for (const int64_t other : {0, 1, 2, 3, 6, 7, 20}) {
      tried.push_back(at_hand);
      std::ranges::replace(tried.back(), size, other);
    }
  const std::vector<sym::Demand> guards = environment.guards();
  counts.guards += static_cast<int>(guards.size());
  for (const Values& values : tried) {
    if (!hold(guards, values)) {
      CHECK(values != at_hand);
      continue;
    }
    std::map<graph::ValueId, TensorMeta> numbers;
    for (const auto& [id, meta] : inputs) numbers.emplace(id, with_values(meta, values));
    const auto expected = apply(node, numbers, nullptr);
    ++counts.compared;
    bool is_right = expected && expected->size() == symbolic->size();
    for (size_t i = 0; is_right && i < symbolic->size(); ++i)
      is_right = with_strides_that_count(with_values((*symbolic)[i], values)) ==
                 with_strides_that_count((*expected)[i]);
    if (is_right) continue;
    std::string texts;
    for (const sym::Demand& guard : guards) texts += environment.text(guard.condition) + "; ";
    std::vector<TensorMeta> given;
    for (const auto& [id, meta] : numbers) given.push_back(meta);
    if (++counts.wrong_of[node.op->name] <= 2)
      MESSAGE(node.op->name, " of ", describe(given), "\n  symbols: ", describe(*symbolic),
              "\n  numbers: ", expected ? describe(*expected) : "refused", "\n  guards: ", texts);
  }
}

}  // namespace

TEST_CASE("shape rules on symbols say what they say on numbers") {
  Counts counts;
  std::map<std::string, int> refused;
  for (const char* family :
       {"attention", "comparison", "convolution", "creation", "indexing", "loss", "matmul", "normalization",
        "pointwise", "pooling", "random", "reductions", "views"}) {
    const graph::Graph g = testing::shape_cases(family);
    for (const graph::Node& node : g.nodes) check_node(g, node, counts, refused);
  }
  std::string names;
  for (const auto& [name, count] : refused) names += fmt::format("{} {}, ", name, count);
  for (const auto& [name, count] : counts.wrong_of) FAIL_CHECK(name, ": ", count, " wrong");
  MESSAGE("covered ", counts.covered, ", refused ", counts.refused, " (", names, "), compared ",
          counts.compared, ", guards ", counts.guards);
  CHECK(counts.covered > 4000);
  CHECK(counts.compared > 50000);
}
