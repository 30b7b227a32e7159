// Minimum cuts, and the cut between forward and backward graphs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/core/registry.h"
#include "passes/training/checkpoints.h"
#include "passes/training/maximum_flow.h"
#include "passes/training/partition.h"
#include "passes/training/recompute.h"
#include "passes/training/softmax_rows.h"

using namespace oxy;
using namespace oxy::passes;

namespace {

struct EdgeSpec {
  int32_t from, to;
  int64_t capacity;
};

int64_t cut_capacity(const std::vector<EdgeSpec>& edges, const std::vector<bool>& late) {
  int64_t total = 0;
  for (const EdgeSpec& e : edges)
    if (!late[static_cast<size_t>(e.from)] && late[static_cast<size_t>(e.to)]) total += e.capacity;
  return total;
}

Partition cut(std::string_view text, const JointRoles& roles) {
  ops::intern_schemas();
  const graph::Graph joint = graph::parse(text);
  graph::verify(joint, true);
  Partition result = partition(joint, roles);
  graph::verify(result.forward, true);
  graph::verify(result.backward, true);
  return result;
}

std::string operators(const graph::Graph& graph) {
  std::string names;
  for (const graph::Node& node : graph.nodes) names += (names.empty() ? "" : " ") + node.op->name.substr(6);
  return names;
}

}  // namespace

TEST_CASE("maximum flow: the cut is minimal, and the last one, in random networks") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int32_t n = 2 + static_cast<int32_t>(random() % 8);
    std::vector<EdgeSpec> edges;
    FlowNetwork network(n);
    for (int32_t from = 0; from < n; ++from)
      for (int32_t to = 0; to < n; ++to)
        if (from != to && random() % 3 == 0) edges.push_back({from, to, static_cast<int64_t>(random() % 9)});
    for (const EdgeSpec& e : edges) network.add_edge(e.from, e.to, e.capacity);
    const std::vector<bool> late = network.minimum_cut(0, n - 1);
    CHECK(late[static_cast<size_t>(n - 1)]);
    CHECK(!late[0]);
    int64_t best = INT64_MAX;
    int fewest = n;  // vertices on the sink's side
    for (uint32_t side = 0; side < (1U << n); ++side) {
      std::vector<bool> tried;
      for (int32_t v = 0; v < n; ++v) tried.push_back((side >> v & 1) != 0);
      if (tried[0] || !tried[static_cast<size_t>(n - 1)]) continue;
      const int64_t capacity = cut_capacity(edges, tried);
      const int size = static_cast<int>(std::ranges::count(tried, true));
      if (capacity < best || (capacity == best && size < fewest)) fewest = size;
      best = std::min(best, capacity);
    }
    CAPTURE(round);
    CHECK(cut_capacity(edges, late) == best);
    CHECK(std::ranges::count(late, true) == fewest);
  }
}

TEST_CASE("maximum flow: a path of a hundred thousand vertices needs no stack; no finite cut is no cut") {
  constexpr int32_t kLength = 100000;
  FlowNetwork path(kLength);
  for (int32_t v = 0; v + 1 < kLength; ++v) path.add_edge(v, v + 1, v == kLength / 2 ? 1 : 2);
  const std::vector<bool> late = path.minimum_cut(0, kLength - 1);
  CHECK(!late[kLength / 2]);
  CHECK(late[kLength / 2 + 1]);
  FlowNetwork unbounded(2);
  unbounded.add_edge(0, 1, FlowNetwork::kUnbounded);
  CHECK(unbounded.minimum_cut(0, 1) == std::vector<bool>{false, false});
}

// y = sin(exp(x) + 1), of which autograd keeps exp(x) + 1 and exp(x).
constexpr std::string_view kChain = R"(graph(%0: float32[64], %1: float32[64]) {
  %2: float32[64] = aten::exp(%0)
  %3: float32[64] = aten::add.Tensor(%2, 1, alpha=1)
  %4: float32[64] = aten::sin(%3)
  %5: float32[64] = aten::cos(%3)
  %6: float32[64] = aten::mul.Tensor(%1, %5)
  %7: float32[64] = aten::mul.Tensor(%6, %2)
  return %4, %7
})";

// y = rsqrt(|x|), whose gradient eager computes from y and x. `%6` is smaller than x, and y follows from %2.
constexpr std::string_view kReadsItself = R"(graph(%0: float32[64], %1: float32[64]) {
  %2: float32[64] = aten::abs(%0)
  %3: float32[64] = aten::rsqrt(%2)
  %4: float32[64] = aten::mul.Tensor(%3, %3)
  %5: float32[64] = aten::mul.Tensor(%4, %3)
  %6: bool[64] = aten::gt.Scalar(%0, 0)
  %7: float32[64] = aten::mul.Tensor(%1, %5)
  %8: float32[64] = aten::mul.Tensor(%7, %6)
  return %3, %8
})";

TEST_CASE("partition: what eager keeps is read itself, for writes of which autograd does not hear") {
  using Kind = SavedValue::Kind;
  const auto saved = [](bool keeps_input, bool keeps_output) {
    const Partition result = cut(kReadsItself, {.forward_inputs = 1,
                                                .forward_outputs = 1,
                                                .keeps_input = {keeps_input},
                                                .keeps_output = {keeps_output}});
    std::vector<Kind> kinds;
    for (const SavedValue& value : result.saved) kinds.push_back(value.kind);
    return std::pair(kinds, operators(result.backward));
  };
  CHECK(saved(true, true) == std::pair(std::vector{Kind::Input, Kind::Output},
                                       std::string("mul.Tensor mul.Tensor mul.Tensor gt.Scalar mul.Tensor")));
  CHECK(saved(false, true).first == std::vector{Kind::Output, Kind::Extra});
  // A view is never saved, whoever holds it.
  const Partition viewed =
      cut(R"(graph(%0: float32[8, 8], %1: float32[64]) {
  %2: float32[8, 8] = aten::exp(%0)
  %3: float32[64] = aten::view(%2, [64])
  %4: float32[8, 8] = aten::view(%3, [8, 8])
  %5: float32[64] = aten::mul.Tensor(%1, %3)
  return %4, %5
})",
          {.forward_inputs = 1, .forward_outputs = 1, .keeps_input = {false}, .keeps_output = {true}});
  CHECK(viewed.saved.size() == 1);
  CHECK(saved(true, false) ==
        std::pair(std::vector{Kind::Input},
                  std::string("abs rsqrt mul.Tensor mul.Tensor mul.Tensor gt.Scalar mul.Tensor")));
}

TEST_CASE("partition: one value is saved where others follow from it") {
  const Partition result = cut(
      kChain, {.forward_inputs = 1, .forward_outputs = 1, .keeps_input = {false}, .keeps_output = {false}});
  REQUIRE(result.saved.size() == 1);
  CHECK(result.saved[0].kind == SavedValue::Kind::Extra);
  CHECK(operators(result.forward) == "exp add.Tensor sin");
  CHECK(operators(result.backward) == "add.Tensor cos mul.Tensor mul.Tensor");  // from exp(x)
  CHECK(result.forward.outputs.size() == 2);
  CHECK(result.gradients == std::vector<int32_t>{0});
}

TEST_CASE("partition: an input that the caller keeps anyway costs less") {
  const Partition result = cut(
      kChain, {.forward_inputs = 1, .forward_outputs = 1, .keeps_input = {true}, .keeps_output = {false}});
  REQUIRE(result.saved.size() == 1);
  CHECK(result.saved[0].kind == SavedValue::Kind::Input);
  CHECK(operators(result.backward) == "exp add.Tensor cos mul.Tensor mul.Tensor");
}

TEST_CASE("partition: products and random numbers are never computed again") {
  const Partition result =
      cut(R"(graph(%0: float32[8, 8], %1: float32[8, 8], %2: float32[8, 8]) {
  %3: float32[8, 8] = aten::mm(%0, %1)
  %4: float32[8, 8] = aten::bernoulli.p(%3, 0.5, generator=None)
  %5: float32[8, 8] = aten::mul.Tensor(%3, %4)
  %6: float32[8, 8] = aten::tanh(%5)
  %7: float32[8, 8] = aten::mul.Tensor(%2, %6)
  %8: float32[8, 8] = aten::mul.Tensor(%7, %4)
  %9: float32[8, 8]{strides=[1, 8]} = aten::t(%1)
  %10: float32[8, 8] = aten::mm(%8, %9)
  return %6, %10
})",
          {.forward_inputs = 2, .forward_outputs = 1, .keeps_input = {true, true}, .keeps_output = {true}});
  CHECK(operators(result.backward) == "mul.Tensor mul.Tensor t mm");
  CHECK(result.saved.size() == 3);  // the output, the random numbers, the weight
  CHECK(std::ranges::count_if(result.saved,
                              [](const SavedValue& s) { return s.kind == SavedValue::Kind::Extra; }) == 1);
}

TEST_CASE(
    "partition: a written input is saved as it was, a tangent is passed on, a constant gradient made late") {
  const Partition result =
      cut(R"(graph(%0: float32[8], %1: float32[8], %2: float32[8]) {
  %3: float32[8] = aten::add.Tensor(%0, %1, alpha=1)
  %4: float32[8] = aten::mul.Tensor(%3, %0)
  %5: float32[8] = aten::mul.Tensor(%2, %0)
  %6: float32[8] = aten::full([8], 2, dtype=float32, layout=None, device=cpu, pin_memory=None)
  mutate input 0 = %3
  return %4, %5, %2, %6
})",
          {.forward_inputs = 2, .forward_outputs = 1, .keeps_input = {true, true}, .keeps_output = {false}});
  REQUIRE(result.saved.size() == 1);
  CHECK(result.saved[0].kind == SavedValue::Kind::Extra);
  CHECK(result.forward.mutations.size() == 1);
  CHECK(operators(result.backward) == "mul.Tensor full");
  REQUIRE(result.backward.outputs.size() == 3);
  CHECK(result.backward.outputs[1].kind == graph::OutputKind::InputAlias);
}

// Two layers tanh(x @ w), each under a checkpoint of its own, and their gradients for x.
constexpr std::string_view kLayers = R"(graph(%0: float32[8, 8], %1: float32[8, 8], %2: float32[8, 8]) {
  %3: float32[8, 8] = aten::mm(%0, %1)  # a.py:1 in f [checkpoint 1]
  %4: float32[8, 8] = aten::tanh(%3)  # a.py:1 in f [checkpoint 1]
  %5: float32[8, 8] = aten::sin(%4)  # a.py:1 in f [checkpoint 1]
  %6: float32[8, 8] = aten::mm(%5, %1)  # a.py:1 in f [checkpoint 2]
  %7: float32[8, 8] = aten::tanh(%6)  # a.py:1 in f [checkpoint 2]
  %8: float32[8, 8] = aten::tanh_backward(%2, %7)
  %9: float32[8, 8]{strides=[1, 8]} = aten::t(%1)
  %10: float32[8, 8] = aten::mm(%8, %9)
  %11: float32[8, 8] = aten::cos(%4)
  %12: float32[8, 8] = aten::mul.Tensor(%10, %11)
  %13: float32[8, 8] = aten::tanh_backward(%12, %4)
  %14: float32[8, 8] = aten::mm(%13, %9)
  return %7, %14
})";

TEST_CASE("partition: what ran under a checkpoint is computed again, from the checkpoint's inputs") {
  const JointRoles roles{
      .forward_inputs = 2, .forward_outputs = 1, .keeps_input = {true, true}, .keeps_output = {true}};
  const Partition result = cut(kLayers, roles);
  CHECK(operators(result.backward) == "tanh_backward t mm mm tanh cos mul.Tensor tanh_backward mm");
  CHECK(result.saved.size() == 3);  // both inputs and the output
  CHECK(std::ranges::none_of(result.saved,
                             [](const SavedValue& s) { return s.kind == SavedValue::Kind::Extra; }));
  std::string plain(kLayers);
  for (size_t mark = 0; (mark = plain.find("[checkpoint", mark)) != std::string::npos;) plain.erase(mark, 14);
  CHECK(operators(cut(plain, roles).backward) == "tanh_backward t mm cos mul.Tensor tanh_backward mm");
}

TEST_CASE("checkpoints: a value that leaves by a view is not computed again, random numbers are kept") {
  ops::intern_schemas();
  const graph::Graph graph = graph::parse(R"(graph(%0: float32[8, 8], %1: float32[8, 8]) {
  %2: float32[8, 8] = aten::exp(%0)  # a.py:1 in f [checkpoint 1]
  %3: float32[8, 8] = aten::bernoulli.p(%2, 0.5, generator=None)  # a.py:1 in f [checkpoint 1]
  %4: float32[8, 8] = aten::mm(%3, %1)  # a.py:1 in f [checkpoint 1]
  %5: float32[64] = aten::view(%4, [64])  # a.py:1 in f [checkpoint 1]
  %6: float32[64] = aten::sin(%5)  # a.py:2 in f
  return %6
})");
  using enum CheckpointRole;
  CHECK(checkpoint_roles(graph, IdVector<graph::NodeId, bool>(graph.nodes.size(), true)) ==
        IdVector<graph::ValueId, CheckpointRole>{None, None, Interior, None, Result, None, None});
}

TEST_CASE("checkpoints: a backward pass of the program's own computes again what it reads") {
  ops::intern_schemas();
  const graph::Graph graph =
      recompute_for_backward(graph::parse(R"(graph(%0: float32[8, 8], %1: float32[8, 8]) {
  %2: float32[8, 8] = aten::mm(%0, %1)  # a.py:1 in f [checkpoint 1]
  %3: float32[8, 8] = aten::tanh(%2)  # a.py:1 in f [checkpoint 1]
  %4: float32[8, 8] = aten::sin(%3)  # a.py:1 in f [checkpoint 1]
  %5: float32[8, 8] = aten::cos(%3)  # a.py:2 in f [checkpoint -1]
  %6: float32[8, 8] = aten::mul.Tensor(%4, %5)  # a.py:2 in f [checkpoint -1]
  %7: float32[8, 8] = aten::add.Tensor(%6, %4, alpha=1)  # a.py:3 in f
  %8: float32[8, 8] = aten::exp(%4)  # a.py:3 in f
  return %7, %8
})"),
                             1);
  graph::verify(graph, true);
  CHECK(operators(graph) == "mm tanh sin mm tanh cos mul.Tensor add.Tensor exp");
  CHECK(graph::same(graph::parse(graph::print(graph)), graph));
}

TEST_CASE("partition: a result that depends on a gradient is refused") {
  CHECK_THROWS_AS(
      cut(R"(graph(%0: float32[8], %1: float32[8]) {
  %2: float32[8] = aten::mul.Tensor(%0, %1)
  return %2, %2
})",
          {.forward_inputs = 1, .forward_outputs = 1, .keeps_input = {true}, .keeps_output = {true}}),
      Unsupported);
}

TEST_CASE(
    "partition: what a softmax of halves is made of is saved, and the result of one of single precision") {
  const auto joint = [](std::string_view halves, std::string_view convert) {
    return fmt::format(R"(graph(%0: {0}[4096, 32], %1: {0}[32, 512], %2: float32[4096, 512]) {{
  %3: {0}[4096, 512] = aten::mm(%0, %1)
  {1}
  %5: float32[4096, 512] = aten::_log_softmax(%4, 1, False)
  %6: float32[4096] = aten::amax(%5, [1], False)
  %7: float32[4096, 512] = aten::exp(%5)
  %8: float32[4096, 512] = aten::mul.Tensor(%2, %7)
  return %6, %8
}})",
                       halves, convert);
  };
  const JointRoles roles{
      .forward_inputs = 2, .forward_outputs = 1, .keeps_input = {true, true}, .keeps_output = {true}};
  const auto cut_rows = [&](const std::string& text) {
    return partition(separate_softmax_rows(graph::parse(text)), roles);
  };
  const Partition halves =
      cut_rows(joint("bfloat16", "%4: float32[4096, 512] = aten::_to_copy(%3, dtype=float32)"));
  CHECK(operators(halves.forward) == "mm _to_copy l::softmax_rows sub.Tensor log sub.Tensor amax");
  CHECK(operators(halves.backward) == "_to_copy sub.Tensor sub.Tensor exp mul.Tensor");
  CHECK(halves.saved.size() == 3);
  const Partition singles =
      cut_rows(joint("float32", "%4: float32[4096, 512] = aten::view(%3, [4096, 512])"));
  CHECK(operators(singles.backward) == "mul.Tensor");
}

// y = gelu(x) @ w, of which x is a product, and the gradients of w and x. `{}`: how many rows.
std::string feed_forward(int rows) {
  return fmt::format(R"(graph(%0: bfloat16[{0}, 512], %1: bfloat16[512, 512], %2: bfloat16[{0}, 512]) {{
  %3: bfloat16[{0}, 512] = aten::mm(%0, %1)
  %4: bfloat16[{0}, 512] = aten::gelu(%3, approximate="tanh")
  %5: bfloat16[{0}, 512] = aten::mm(%4, %1)
  %6: bfloat16[512, {0}]{{strides=[1, 512]}} = aten::permute(%4, [1, 0])
  %7: bfloat16[512, 512] = aten::mm(%6, %2)
  %8: bfloat16[512, 512]{{strides=[1, 512]}} = aten::permute(%1, [1, 0])
  %9: bfloat16[{0}, 512] = aten::mm(%2, %8)
  %10: bfloat16[{0}, 512] = aten::gelu_backward(%9, %3, approximate="tanh")
  %11: bfloat16[{0}, 512] = aten::mm(%10, %8)
  return %5, %7, %11
}})",
                     rows);
}

TEST_CASE("partition: what a kernel of the backward pass can make beside a gradient is made there") {
  const JointRoles roles{
      .forward_inputs = 2, .forward_outputs = 1, .keeps_input = {true, true}, .keeps_output = {true}};
  const Partition result = cut(feed_forward(4096), roles);
  // The product that reads the gelu's result comes behind the gelu's gradient.
  CHECK(operators(result.backward) == "permute mm gelu_backward gelu permute mm mm");
  CHECK(result.saved.size() == 2);  // the weight, and what the gelu was made of
  // Little is saved: the order stays.
  const Partition small = cut(feed_forward(16), roles);
  CHECK(operators(small.backward) == "permute mm permute mm gelu_backward mm");
  CHECK(small.saved.size() == 3);
}

TEST_CASE("partition: values that are read on many ways take no time") {
  std::string text = "graph(%0: float32[1024, 512], %1: float32[1024, 512]) {\n";
  constexpr int kLevels = 200;
  for (int i = 0; i < kLevels; ++i) {
    const int from = i == 0 ? 0 : i + 1, to = i + 2;
    text += fmt::format("  %{}: float32[1024, 512] = aten::mul.Tensor(%{}, %{})\n", to, from, from);
  }
  text += fmt::format(R"(  %{0}: float32[1024, 512] = aten::mul.Tensor(%1, %{1})
  %{2}: float32[1024, 512] = aten::sin(%0)
  return %{2}, %{0}
}})",
                      kLevels + 2, kLevels + 1, kLevels + 3);
  const Partition result =
      cut(text, {.forward_inputs = 1, .forward_outputs = 1, .keeps_input = {true}, .keeps_output = {false}});
  CHECK(result.backward.nodes.size() == kLevels + 1);
  CHECK(result.saved.size() == 1);
}

TEST_CASE("partition: of a dropout the mask is saved, and not the result") {
  const Partition result = cut(
      R"(graph(%0: bfloat16[4096, 512], %1: bfloat16[512, 512], %2: bfloat16[4096, 512]) {
  %3: int64[2] = oxyfuel::philox_states([2097152], 1024, cpu)
  %4: bfloat16[4096, 512] = aten::mm(%0, %1)
  %5: bfloat16[4096, 512] = aten::relu(%4)
  %6: bool[4096, 512] = oxyfuel::philox_mask(%3, 0, 0.1, 4, 1024, bfloat16, [4096, 512], [512, 1])
  %7: bfloat16[4096, 512] = oxyfuel::scale_kept(%5, %6, 0.1)
  %8: bfloat16[4096, 512] = aten::mm(%7, %1)
  %9: bfloat16[512, 4096]{strides=[1, 512]} = aten::permute(%7, [1, 0])
  %10: bfloat16[512, 512] = aten::mm(%9, %2)
  %11: bfloat16[512, 512]{strides=[1, 512]} = aten::permute(%1, [1, 0])
  %12: bfloat16[4096, 512] = aten::mm(%2, %11)
  %13: bfloat16[4096, 512] = aten::native_dropout_backward(%12, %6, 1.1111111111111112)
  %14: bool[4096, 512] = aten::le.Scalar(%5, 0)
  %15: bfloat16[] = aten::full([], 0.0, dtype=bfloat16, layout=None, device=cpu, pin_memory=None)
  %16: bfloat16[4096, 512] = aten::where.self(%14, %15, %13)
  return %8, %10, %16
})",
      {.forward_inputs = 2, .forward_outputs = 1, .keeps_input = {true, true}, .keeps_output = {true}});
  CHECK(operators(result.backward) ==
        "permute mm native_dropout_backward full le.Scalar where.self l::scale_kept permute mm");
  CHECK(result.saved.size() == 3);  // the weight, the mask, and what the relu gives
}

TEST_CASE("partition: a saved result that the caller may write to is shared, unless it is small") {
  const auto saved = [](int rows) {
    const Partition result = cut(
        fmt::format(R"(graph(%0: float32[{0}, 512], %1: float32[512, 512], %2: float32[{0}, 512]) {{
  %3: float32[{0}, 512] = aten::mm(%0, %1)
  %4: float32[512, {0}] = aten::view(%3, [512, {0}])
  %5: float32[{0}, 512] = aten::mul.Tensor(%2, %3)
  return %4, %5
}})",
                    rows),
        {.forward_inputs = 2, .forward_outputs = 1, .keeps_input = {true, true}, .keeps_output = {false}});
    CHECK(operators(result.backward).ends_with("mul.Tensor"));
    CHECK(result.saved.size() == 1);
    return result.saved.at(0).kind;
  };
  CHECK(saved(1024) == SavedValue::Kind::Shared);
  CHECK(saved(16) == SavedValue::Kind::Extra);
}

TEST_CASE("softmax rows: an operand may be joined of parts in memory, on however many ways") {
  const auto joined = [](std::string_view first) {
    std::string text = fmt::format(R"(graph(%0: bfloat16[4096, 32], %1: bfloat16[32, 512]) {{
  %2: bfloat16[4096, 512] = aten::{}
)",
                                   first);
    int last = 2;
    for (int level = 0; level < 40; ++level, last += 3)
      text += fmt::format(
          R"(  %{1}: bfloat16[4096, 256]{{strides=[512, 1]}} = aten::slice.Tensor(%{0}, 1, 0, 256, 1)
  %{2}: bfloat16[4096, 256]{{strides=[512, 1], offset=256}} = aten::slice.Tensor(%{0}, 1, 256, 512, 1)
  %{3}: bfloat16[4096, 512] = aten::cat([%{2}, %{1}], 1)
)",
          last, last + 1, last + 2, last + 3);
    text += fmt::format(R"(  %{1}: float32[4096, 512] = aten::_to_copy(%{0}, dtype=float32)
  %{2}: float32[4096, 512] = aten::_log_softmax(%{1}, 1, False)
  return %{2}
}})",
                        last, last + 1, last + 2);
    ops::intern_schemas();
    return operators(separate_softmax_rows(graph::parse(text)));
  };
  CHECK(joined("mm(%0, %1)").find("l::softmax_rows") != std::string::npos);
  CHECK(joined("new_zeros(%0, [4096, 512], dtype=None, layout=None, device=None, pin_memory=None)")
            .find("l::softmax_rows") == std::string::npos);
}

TEST_CASE("softmax rows: so is an operand that the caller gets, whatever its type") {
  const auto separated = [](std::string_view outputs) {
    ops::intern_schemas();
    return operators(separate_softmax_rows(
                         graph::parse(fmt::format(R"(graph(%0: float32[4096, 32], %1: float32[32, 512]) {{
  %2: float32[4096, 512] = aten::mm(%0, %1)
  %3: float32[8, 512, 512] = aten::view(%2, [8, 512, 512])
  %4: float32[4096, 512] = aten::_log_softmax(%2, 1, False)
  return {}
}})",
                                                  outputs))))
               .find("l::softmax_rows") != std::string::npos;
  };
  CHECK(separated("%4, %3"));
  CHECK(!separated("%4"));
}

TEST_CASE("partition: what is made once is saved, however cheap it is") {
  const std::string_view joint = R"(graph(%0: float32[8], %1: float32[8]) {
  %2: float32[8] = aten::sin(%0)
  %3: float32[8] = aten::cos(%0)
  %4: float32[8] = aten::mul.Tensor(%1, %3)
  return %2, %4
})";
  JointRoles roles{.forward_inputs = 1, .forward_outputs = 1, .keeps_input = {true}, .keeps_output = {false}};
  CHECK(operators(cut(joint, roles).backward) == "cos mul.Tensor");
  for (const double budget : {1.0, 0.0}) {
    roles.memory_budget = budget;
    roles.made_once = {false, true, false};
    const Partition result = cut(joint, roles);
    CHECK(operators(result.backward) == "mul.Tensor");
    CHECK(result.saved.at(0).kind == SavedValue::Kind::Extra);
  }
}

// Layers that add a product of bfloat16 to a sum of float32, and the gradient through them, which reads each
// sum.
std::string residual_stream(int layers) {
  std::string text = "graph(%0: float32[8, 8]";
  for (int i = 1; i <= layers; ++i) text += fmt::format(", %{}: bfloat16[8, 8]", i);
  const int tangent = layers + 1;
  text += fmt::format(", %{}: float32[8, 8]) {{\n", tangent);
  int next = tangent;
  const auto node = [&](std::string_view type, std::string_view call) {
    text += fmt::format("  %{}: {} = aten::{}\n", ++next, type, call);
    return next;
  };
  const auto converted = [&](int value, std::string_view dtype) {
    return node(fmt::format("{}[8, 8]", dtype),
                fmt::format("_to_copy(%{}, dtype={}, layout=None, device=None, pin_memory=None, "
                            "non_blocking=False, memory_format=None)",
                            value, dtype));
  };
  const auto sum = [&](int a, int b) {
    return node("float32[8, 8]", fmt::format("add.Tensor(%{}, %{}, alpha=1)", a, b));
  };
  std::vector<int> sums = {0};
  for (int i = 1; i <= layers; ++i) {
    const int operand = converted(node("float32[8, 8]", fmt::format("sin(%{})", sums.back())), "bfloat16");
    const int product = node("bfloat16[8, 8]", fmt::format("mm(%{}, %{})", operand, i));
    sums.push_back(sum(sums.back(), converted(product, "float32")));
  }
  int gradient = tangent;
  for (int i = layers; i >= 1; --i) {
    const int operand = converted(gradient, "bfloat16");
    const int weight = node("bfloat16[8, 8]{strides=[1, 8]}", fmt::format("t(%{})", i));
    const int product =
        converted(node("bfloat16[8, 8]", fmt::format("mm(%{}, %{})", operand, weight)), "float32");
    const int slope = node("float32[8, 8]", fmt::format("cos(%{})", sums[static_cast<size_t>(i) - 1]));
    gradient = sum(gradient, node("float32[8, 8]", fmt::format("mul.Tensor(%{}, %{})", product, slope)));
  }
  return text + fmt::format("  return %{}, %{}\n}}", sums.back(), gradient);
}

TEST_CASE("partition: a sum of layers is not computed again through all of them") {
  constexpr int kLayers = 6;
  const Partition result = cut(residual_stream(kLayers), {.forward_inputs = kLayers + 1,
                                                          .forward_outputs = 1,
                                                          .keeps_input = std::vector<bool>(kLayers + 1, true),
                                                          .keeps_output = {false}});
  const graph::Graph& backward = result.backward;
  const size_t tangents = 1;
  const auto is_saved = [&](const graph::Argument& argument) {
    const auto saved = std::span(backward.inputs).first(backward.inputs.size() - tangents);
    const auto* ref = std::get_if<graph::ValueRef>(&argument);
    return ref != nullptr && std::ranges::find(saved, ref->id) != saved.end();
  };
  // The gradient is a sum as well, of which no operand is saved.
  const auto again = std::ranges::count_if(backward.nodes, [&](const graph::Node& node) {
    return node.op->name == "aten::add.Tensor" && is_saved(node.args[0]);
  });
  const auto sums = std::ranges::count_if(
      backward.nodes, [](const graph::Node& node) { return node.op->name == "aten::add.Tensor"; });
  CHECK(sums - again == kLayers);
  CHECK(again <= (kLayers + 1) / 2);
}

TEST_CASE("partition: a memory budget has products computed again") {
  const std::string_view joint =
      R"(graph(%0: float32[8, 8], %1: float32[8, 8], %2: float32[8, 8], %3: float32[8, 8]) {
  %4: float32[8, 8] = aten::mm(%0, %1)
  %5: float32[8, 8] = aten::sin(%4)
  %6: float32[8, 8] = aten::mm(%5, %2)
  %7: float32[8, 8] = aten::sin(%6)
  %8: float32[8, 8] = aten::cos(%6)
  %9: float32[8, 8] = aten::mul.Tensor(%3, %8)
  %10: float32[8, 8]{strides=[1, 8]} = aten::t(%2)
  %11: float32[8, 8] = aten::mm(%9, %10)
  %12: float32[8, 8] = aten::cos(%4)
  %13: float32[8, 8] = aten::mul.Tensor(%11, %12)
  %14: float32[8, 8]{strides=[1, 8]} = aten::t(%5)
  %15: float32[8, 8] = aten::mm(%14, %9)
  %16: float32[8, 8]{strides=[1, 8]} = aten::t(%0)
  %17: float32[8, 8] = aten::mm(%16, %13)
  return %7, %17, %15
})";
  JointRoles roles{3, 1, {true, true, true}, {false}};
  const auto saved_tensors = [&](double budget) {
    roles.memory_budget = budget;
    return std::ranges::count_if(cut(joint, roles).saved,
                                 [](const SavedValue& s) { return s.kind == SavedValue::Kind::Extra; });
  };
  CHECK(saved_tensors(1) == 3);  // both sums, and the sine that products read in both passes
  CHECK(saved_tensors(0.9) == 2);
  CHECK(saved_tensors(0.5) == 1);
  CHECK(saved_tensors(0) == 0);
}
