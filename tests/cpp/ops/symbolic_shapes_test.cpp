// Every shape rule on symbols beside itself on numbers: all cases of tests/golden/shapes, with a symbol for
// each size.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "aten/strides_that_count.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "ops/shape_cases.h"
#include "ops/symbolic_calls.h"
#include "sym/random_conditions.h"

using namespace oxy;
using testing::describe;
using testing::Values;
using testing::with_values;

namespace {

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
    return testing::results_by_rule(
        node, ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32, false, questions));
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

void check_node(const graph::Graph& g, const graph::Node& node, Counts& counts,
                std::map<std::string, int>& refused) {
  sym::ShapeEnvironment environment;
  const testing::Questions questions(environment);
  std::map<graph::ValueId, TensorMeta> inputs;
  graph::for_each_input(node, [&](graph::ValueId id) {
    if (!inputs.contains(id)) inputs.emplace(id, testing::with_symbols(environment, g.meta(id)));
  });
  if (environment.symbols().empty()) return;
  const auto symbolic = apply(node, inputs, &questions);
  if (!symbolic) {
    ++counts.refused;
    ++refused[node.op->name];
    return;
  }
  ++counts.covered;
  const Values at_hand = testing::at_hand(environment);
  std::vector<int64_t> different = at_hand;
  std::ranges::sort(different);
  different.erase(std::ranges::unique(different).begin(), different.end());
  // One size at a time becomes another one, wherever it stands and by itself.
  std::vector<Values> tried{at_hand};
  for (const int64_t size : different)
    for (const int64_t other : {0, 1, 2, 3, 6, 7, 20}) {
      tried.push_back(at_hand);
      std::ranges::replace(tried.back(), size, other);
    }
  for (size_t i = 0; i < at_hand.size(); ++i)
    for (const int64_t other : {0, 1, 2, 5}) {
      tried.push_back(at_hand);
      tried.back()[i] = other;
    }
  const std::vector<sym::Demand> guards = environment.guards();
  counts.guards += static_cast<int>(guards.size());
  for (const Values& values : tried) {
    if (!testing::hold(guards, values)) {
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
       {"attention", "comparison", "convolution", "creation", "fourier", "indexing", "linear_algebra", "loss",
        "matmul", "normalization", "pointwise", "pooling", "random", "reductions", "views"}) {
    const graph::Graph g = testing::shape_cases(family);
    for (const graph::Node& node : g.nodes) check_node(g, node, counts, refused);
  }
  std::string names;
  for (const auto& [name, count] : refused) names += fmt::format("{} {}, ", name, count);
  for (const auto& [name, count] : counts.wrong_of) FAIL_CHECK(name, ": ", count, " wrong");
  MESSAGE("covered ", counts.covered, ", refused ", counts.refused, " (", names, "), compared ",
          counts.compared, ", guards ", counts.guards);
  CHECK(counts.refused == 0);
  CHECK(counts.covered > 4700);
  CHECK(counts.compared > 80000);
}

namespace {

// A view of a tensor over symbols, with sizes that are made of its own.
struct ViewCase {
  TensorMeta tensor;
  std::vector<Expr> sizes;
  bool is_plain = true;  // a contiguous tensor, whose dimensions are joined: nothing needs to be asked
};

ViewCase random_view(sym::ShapeEnvironment& environment, sym::testing::RandomConditions& random) {
  ViewCase result;
  TensorMeta& meta = result.tensor;
  const auto rank = static_cast<size_t>(1 + random.pick(3));
  for (size_t d = 0; d < rank; ++d)
    meta.sizes.push_back(testing::new_symbol(environment, sym::SymbolKind::Size, 1 + random.pick(4)));
  meta.strides = contiguous_strides(meta.sizes);
  if (rank > 1 && random.chance(30)) {
    std::swap(meta.sizes[0], meta.sizes[1]);
    std::swap(meta.strides[0], meta.strides[1]);
    result.is_plain = false;
  }
  if (random.chance(20)) {  // every other element of a dimension
    const auto d = static_cast<size_t>(random.pick(static_cast<int64_t>(rank)));
    meta.sizes[d] = sym::ceildiv(meta.sizes[d], 2);
    meta.strides[d] = meta.strides[d] * 2;
    result.is_plain = false;
  }
  if (random.chance(10)) {
    meta.sizes.insert(meta.sizes.begin(), testing::new_symbol(environment, sym::SymbolKind::Size, 2));
    meta.strides.insert(meta.strides.begin(), Expr(0));
    result.is_plain = false;
  }
  for (const Expr& size : meta.sizes) {
    if (random.chance(10)) result.sizes.emplace_back(1);
    if (!result.sizes.empty() && random.chance(40)) {
      result.sizes.back() = result.sizes.back() * size;
    } else if (random.chance(15)) {
      result.sizes.push_back(sym::floordiv(size, 2));
      result.sizes.emplace_back(2);
      result.is_plain = false;
    } else {
      result.sizes.push_back(size);
    }
  }
  if (random.chance(25)) {
    result.sizes[static_cast<size_t>(random.pick(static_cast<int64_t>(result.sizes.size())))] = -1;
    result.is_plain = false;
  }
  return result;
}

// What the rule says; nothing if it refuses the view.
std::optional<TensorMeta> viewed(const TensorMeta& meta, const std::vector<Expr>& sizes,
                                 const ops::SizeQuestions* questions) {
  const OperatorSchema* schema = ops::schema_of(*ops::find("aten::view"));
  const std::vector<graph::Argument> args{graph::ValueRef{graph::ValueId(0)}, sizes};
  const std::function<const TensorMeta&(graph::ValueId)> meta_of = [&](graph::ValueId) -> const TensorMeta& {
    return meta;
  };
  try {
    return ops::find("aten::view")
        ->shape(ops::ShapeContext(*schema, args, meta_of, DType::Float32, false, questions))
        .front();
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("views of symbolic sizes are those of the numbers, and plain ones need no guard") {
  const uint64_t seed = 11;
  MESSAGE("seed ", seed);
  sym::testing::RandomConditions random(seed);
  int views = 0, plain = 0, compared = 0;
  for (int round = 0; round < sym::testing::rounds(3000); ++round) {
    sym::ShapeEnvironment environment;
    const ViewCase c = random_view(environment, random);
    const testing::Questions questions(environment);
    const auto sizes_of = [&](const Values& values) {
      std::vector<Expr> sizes;
      for (const Expr& size : c.sizes) sizes.push_back(with_values(size, values));
      return sizes;
    };
    const Values at_hand = testing::at_hand(environment);
    const std::optional<TensorMeta> symbolic = viewed(c.tensor, c.sizes, &questions);
    const auto expected = viewed(with_values(c.tensor, at_hand), sizes_of(at_hand), nullptr);
    CAPTURE(describe({c.tensor}));
    CAPTURE(fmt::format("{}", fmt::join(at_hand, ",")));
    std::string asked;
    for (const Expr& size : c.sizes) asked += size.str() + ", ";
    CAPTURE(asked);
    REQUIRE(symbolic.has_value() == expected.has_value());
    if (!symbolic) continue;
    ++views;
    const std::vector<sym::Demand> guards = environment.guards();
    if (c.is_plain) {
      ++plain;
      CHECK(guards.empty());
    }
    Values values(at_hand.size(), 0);
    for (size_t d = 0; d < values.size();) {  // all of 0..4
      if (testing::hold(guards, values)) {
        ++compared;
        const auto numbers = viewed(with_values(c.tensor, values), sizes_of(values), nullptr);
        CAPTURE(fmt::format("{}", fmt::join(values, ",")));
        REQUIRE(numbers.has_value());
        REQUIRE(with_strides_that_count(with_values(*symbolic, values)) == with_strides_that_count(*numbers));
      }
      for (d = 0; d < values.size() && ++values[d] == 5; ++d) values[d] = 0;
    }
  }
  MESSAGE("views ", views, ", plain ", plain, ", compared ", compared);
  CHECK(views > 1500);
  CHECK(plain > 300);
}

TEST_CASE("ordinary calls need no answer about a size without a value") {
  ops::intern_schemas();
  const graph::Graph g = graph::parse(R"(symbol s0: id 0 in [0, 1000]
graph(%0: float32[s0, 4], %1: float32[4, 5], %2: float32[5], %3: int64[s0], %4: float32[10, 4],
    %5: float32[s0, 4, 3, 2], %6: float32[6, 4, 1, 1]) {
  %7: float32[s0, 5] = aten::addmm(%2, %0, %1)
  %8: float32[s0, 5] = aten::relu(%7)
  %9: float32[s0, 5] = aten::_softmax(%8, -1, False)
  %10: float32[s0, 4] = aten::embedding(%4, %3)
  %11: float32[s0, 4] = aten::add.Tensor(%0, %10)
  %12: float32[s0, 2, 2] = aten::view(%11, [s0, 2, 2])
  %13: float32[2*s0, 2] = aten::view(%12, [-1, 2])
  %14: float32[2, s0, 2]{strides=[2, 4, 1]} = aten::permute(%12, [1, 0, 2])
  %15: float32[2, s0, 2]{strides=[2, 4, 1]} = aten::mul.Tensor(%14, 2.0)
  %16: float32[4, s0]{strides=[1, 4]} = aten::t(%0)
  %17: float32[s0 + 10, 4] = aten::cat([%0, %4])
  %18: float32[4] = aten::sum.dim_IntList(%0, [0])
  %19: float32[s0, 4], %20: float32[s0, 1], %21: float32[s0, 1] = aten::native_layer_norm(%0, [4], None, None, 1e-05)
  %22: float32[s0, 24] = aten::view(%5, [s0, 24])
  %23: float32[s0, 6, 3, 2] = aten::convolution(%5, %6, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
  %24: float32[s0, 2]{strides=[4, 1]} = aten::slice.Tensor(%0, 1, 0, 2)
  %25: float32[s0, 2] = aten::clone(%24)
  return %9
})");
  sym::ShapeEnvironment environment;
  environment.data_dependent({.name = "u"}, {0, 1000});
  const testing::Questions questions(environment);
  const std::function<const TensorMeta&(graph::ValueId)> meta_of =
      [&](graph::ValueId id) -> const TensorMeta& { return g.meta(id); };
  for (const graph::Node& node : g.nodes) {
    CAPTURE(node.op->name);
    const std::vector<TensorMeta> metas =
        ops::find(node.op->name)
            ->shape(ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32, false, &questions));
    REQUIRE(metas.size() == node.outputs.size());
    for (size_t k = 0; k < metas.size(); ++k) CHECK(metas[k].sizes == g.meta(node.outputs[k]).sizes);
  }
  CHECK(environment.demands().empty());
  CHECK(environment.assertions().empty());
}
