// Graphs through lowering, scheduling, code generation and a compiler, compared with the loop interpreter.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/graph_checks.h"
#include "growth.h"
#include "sym/hints.h"

using namespace oxy;
using namespace oxy::testing;

TEST_CASE("backendule: element-wise chains become one kernel at every size") {
  for (int n : {0, 1, 7, 17, 1023, 70000}) {
    CAPTURE(n);
    auto outcome = check_graph(fmt::format(R"(graph(%0: float32[{0}], %1: float32[{0}]) {{
  %2: float32[{0}] = aten::add.Tensor(%0, %1, alpha=2)
  %3: float32[{0}] = aten::gelu(%2)
  %4: float32[{0}] = aten::mul.Tensor(%3, %2)
  return %4
}})",
                                           n));
    CHECK(launches(outcome) <= 1);
  }
}

TEST_CASE("backendule: every element type") {
  for (const char* dtype :
       {"float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8"}) {
    CAPTURE(dtype);
    bool half = std::string_view(dtype).find("16") != std::string_view::npos;
    check_graph(fmt::format(R"(graph(%0: {0}[3, 37], %1: {0}[37]) {{
  %2: {0}[3, 37] = aten::add.Tensor(%0, %1)
  %3: {0}[3, 37] = aten::mul.Tensor(%2, %0)
  %4: bool[3, 37] = aten::gt.Tensor(%3, %1)
  %5: {0}[3, 37] = aten::where.self(%4, %3, %1)
  return %5, %4
}})",
                            dtype),
                half ? Tolerance{1e-2, 1e-2} : Tolerance{});
  }
}

TEST_CASE("backendule: softmax and layer norm stay in a row") {
  for (int n : {1, 7, 17, 64, 197, 768, 1023}) {
    CAPTURE(n);
    auto softmax = check_graph(fmt::format(R"(graph(%0: float32[5, {0}]) {{
  %1: float32[5, {0}] = aten::_softmax(%0, -1, False)
  return %1
}})",
                                           n));
    CHECK(launches(softmax) == 1);
    auto norm = check_graph(
        fmt::format(R"(graph(%0: float32[5, {0}], %1: float32[5, {0}], %2: float32[{0}], %3: float32[{0}]) {{
  %4: float32[5, {0}] = aten::add.Tensor(%0, %1)
  %5: float32[5, {0}], %6: float32[5, 1], %7: float32[5, 1] = aten::native_layer_norm(%4, [{0}], %2, %3, 1e-05)
  %8: float32[5, {0}] = aten::gelu(%5)
  return %8, %4
}})",
                    n),
        {1e-4, 1e-4});
    CHECK(launches(norm) == 1);
  }
}

TEST_CASE("backendule: reductions over rows, columns and everything") {
  for (const char* dims : {"[0]", "[1]", "[2]", "[0, 2]", "[1, 2]", "[0, 1, 2]", "[0, 1]"}) {
    CAPTURE(dims);
    for (const char* sizes : {"3, 5, 70", "3, 70, 5", "70, 1, 33"}) {
      CAPTURE(sizes);
      std::string reduced = std::string(dims).find('0') != std::string::npos
                                ? "1"
                                : std::string(sizes).substr(0, std::string(sizes).find(','));
      // keepdim sizes, worked out by hand from the text
      std::vector<std::string> size;
      std::string rest = sizes;
      for (size_t at; (at = rest.find(", ")) != std::string::npos; rest = rest.substr(at + 2))
        size.push_back(rest.substr(0, at));
      size.push_back(rest);
      std::string kept;
      for (int d = 0; d < 3; ++d)
        kept += (d ? ", " : "") + (std::string(dims).find(static_cast<char>('0' + d)) != std::string::npos
                                       ? "1"
                                       : size[static_cast<size_t>(d)]);
      check_graph(fmt::format(R"(graph(%0: float32[{0}]) {{
  %1: float32[{1}] = aten::sum.dim_IntList(%0, {2}, True, dtype=None)
  %2: float32[{1}] = aten::amax(%0, {2}, True)
  %3: float32[{0}] = aten::sub.Tensor(%0, %2)
  %4: float32[{1}] = aten::mean.dim(%3, {2}, True, dtype=None)
  return %1, %2, %4
}})",
                              sizes, kept, dims),
                  {1e-4, 1e-4});
    }
  }
}

TEST_CASE("backendule: index loads, argmax, windows and transposes") {
  check_graph(R"(graph(%0: float32[5, 33], %1: int64[4, 3], %2: float32[3, 33]) {
  %3: float32[4, 3, 33] = aten::embedding(%0, %1)
  %4: float32[4, 3, 33] = aten::add.Tensor(%3, %2)
  return %4
})");
  for (const char* shape : {"4, 50", "50, 4"})
    for (int dim : {0, 1}) {
      CAPTURE(shape);
      CAPTURE(dim);
      std::string kept = (shape[0] == '4') == (dim == 0) ? "50" : "4";
      check_graph(fmt::format(R"(graph(%0: float32[{}]) {{
  %1: int64[{}] = aten::argmax(%0, {}, False)
  return %1
}})",
                              shape, kept, dim));
    }
  check_graph(R"(graph(%0: float32[1, 33], %1: float32[7, 33], %2: float32[7]) {
  %3: float32[1, 33] = aten::exp(%0)
  %4: float32[1, 7] = oxyfuel::vector_product(%3, %1)
  %5: float32[1, 7] = aten::add.Tensor(%4, %2, alpha=1)
  return %5
})");
  check_graph(R"(graph(%0: float32[2, 20, 9, 11]{strides=[1980, 1, 220, 20]}, %1: float32[3, 3, 20, 1]) {
  %2: float32[2, 20, 5, 6]{strides=[600, 1, 120, 20]} = oxyfuel::depthwise_convolution(%0, %1, [2, 2], [1, 1], [1, 1], channels_last)
  %3: float32[2, 20, 5, 6]{strides=[600, 1, 120, 20]} = aten::relu(%2)
  return %3
})");
  check_graph(R"(graph(%0: float32[2, 5, 9, 11]) {
  %1: float32[2, 5, 5, 6], %2: int8[2, 5, 5, 6] = oxyfuel::max_pool2d_places(%0, [3, 3], [2, 2], [1, 1], [1, 1], False)
  return %1
})");
  check_graph(R"(graph(%0: float32[2, 20, 9, 11]{strides=[1980, 1, 220, 20]}) {
  %1: float32[2, 20, 9, 11]{strides=[1980, 1, 220, 20]} = aten::relu(%0)
  %2: float32[2, 20, 1, 1]{strides=[20, 1, 20, 20]} = aten::mean.dim(%1, [2, 3], True, dtype=None)
  %3: float32[2, 20, 9, 11]{strides=[1980, 1, 220, 20]} = aten::mul.Tensor(%1, %2)
  return %3
})");
  check_graph(R"(graph(%0: float32[2, 20, 9, 35]) {
  %1: float32[2, 9, 35, 20]{strides=[6300, 35, 1, 315]} = aten::permute(%0, [0, 2, 3, 1])
  %2: float32[2, 9, 35, 20] = aten::clone(%1, memory_format=contiguous)
  %3: float32[2, 9, 35, 20] = aten::mul.Tensor(%2, 2)
  return %3
})");
  check_graph(R"(graph(%0: float32[2, 3, 8, 16]) {
  %1: float32[2, 8, 3, 16]{strides=[384, 16, 128, 1]} = aten::permute(%0, [0, 2, 1, 3])
  %2: float32[2, 8, 48] = aten::_unsafe_view(%1, [2, 8, 48])
  %3: float32[2, 8, 48] = aten::add.Tensor(%2, 1)
  return %3
})");
}

TEST_CASE("backendule: concatenation, padding and losses") {
  check_graph(R"(graph(%0: float32[3, 5], %1: float32[3, 17], %2: float32[3, 2]) {
  %3: float32[3, 24] = aten::cat([%0, %1, %2], 1)
  %4: float32[3, 24] = aten::tanh(%3)
  return %4
})");
  check_graph(R"(graph(%0: float32[3, 5, 19]) {
  %1: float32[3, 8, 24] = aten::constant_pad_nd(%0, [2, 3, 1, 2], 0.5)
  %2: float32[3, 8, 24] = aten::exp(%1)
  return %2
})");
  check_graph(R"(graph(%0: float32[6, 50], %1: int64[6]) {
  %2: float32[6, 50] = aten::_log_softmax(%0, 1, False)
  %3: float32[], %4: float32[] = aten::nll_loss_forward(%2, %1, None, 1, -100)
  return %3
})");
  check_graph(R"(graph(%0: float32[6, 50], %1: int64[6, 4]) {
  %2: float32[6, 4] = aten::gather(%0, 1, %1)
  %3: float32[6, 50] = aten::scatter_add(%0, 1, %1, %2)
  return %3
})");
}

TEST_CASE("backendule: sums over several dimensions with the lanes across") {
  check_graph(R"(graph(%0: float32[2, 16, 16, 8], %1: float32[2, 8, 16, 16]) {
  %2: float32[2, 16, 16, 8]{strides=[2048, 16, 1, 256]} = aten::permute(%1, [0, 2, 3, 1])
  %3: float32[2, 16, 16, 8] = aten::mul.Tensor(%0, %2)
  %4: float32[8] = aten::sum.dim_IntList(%3, [0, 1, 2], False, dtype=None)
  %5: float32[8] = aten::sum.dim_IntList(%0, [0, 1, 2], False, dtype=None)
  %6: float32[8] = aten::sum.dim_IntList(%0, [1, 2, 0], False, dtype=None)
  return %4, %5, %6
})",
              {1e-4, 1e-4});
}

TEST_CASE("backendule: a masked load of what the same iteration stores") {
  check_graph(R"(graph(%0: int64[2, 16], %1: float32[32, 20]) {
  %2: int64[2, 17] = aten::constant_pad_nd(%0, [0, 1], -100)
  %3: int64[2, 16]{strides=[17, 1]} = aten::slice.Tensor(%2, 1, 1, 17, 1)
  %4: int64[2, 16] = aten::clone(%3, memory_format=contiguous)
  %5: int64[32] = aten::view(%4, [32])
  %6: float32[], %7: float32[] = aten::nll_loss_forward(%1, %5, None, 1, -100)
  return %6, %7, %5
})",
              {1e-4, 1e-4});
}

TEST_CASE("backendule: a computed index is one number in one phase and a vector in another") {
  check_graph(R"(graph(%0: int64[2, 128], %1: int64[2, 128]) {
  %2: int64[128] = aten::arange(128, dtype=int64, layout=None, device=cpu, pin_memory=False)
  %3: int64[2] = aten::arange(2, dtype=int64, layout=None, device=cpu, pin_memory=False)
  %4: int64[2, 1, 1, 1] = aten::view(%3, [2, 1, 1, 1])
  %5: int64[128, 1] = aten::view(%2, [128, 1])
  %6: int64[2, 1, 128, 1] = aten::index.Tensor(%0, [%4, %5])
  %7: int64[2, 1, 1, 128] = aten::index.Tensor(%0, [%4, %2])
  %8: bool[2, 1, 128, 128] = aten::eq.Tensor(%6, %7)
  %9: int64[2, 1, 128, 1] = aten::index.Tensor(%1, [%4, %5])
  %10: int64[2, 1, 1, 128] = aten::index.Tensor(%1, [%4, %2])
  %11: bool[2, 1, 128, 128] = aten::le.Tensor(%10, %9)
  %12: bool[2, 1, 128, 128] = aten::bitwise_and.Tensor(%8, %11)
  %13: int64[2, 1, 1, 128] = aten::mul.Tensor(%7, 2)
  return %12, %13, %6
})");
}

TEST_CASE("backendule: long reductions to few results are split") {
  auto outcome = check_graph(R"(graph(%0: float32[3, 512, 257]) {
  %1: float32[] = aten::sum(%0, dtype=None)
  %2: float32[3] = aten::amax(%0, [1, 2], False)
  %3: float32[] = aten::mean(%0, dtype=None)
  return %1, %2, %3
})",
                             {1e-4, 1e-2});
  int64_t widest = 0;
  for (const plan::Step& step : outcome.plan.steps) widest = std::max(widest, slices(step).extent.constant());
  CHECK(widest >= 64);
}

TEST_CASE("backendule: symbolic sizes") {
  const std::string text = R"(symbol b : id 1 in [2, 1024]
symbol s : id 2 in [2, 4096]
graph(%0: float32[b, s, 40], %1: float32[40], %2: float32[b, 1, s]) {
  %3: float32[b, s, 40] = aten::add.Tensor(%0, %1)
  %4: float32[b, s, 40], %5: float32[b, s, 1], %6: float32[b, s, 1] = aten::native_layer_norm(%3, [40], %1, %1, 1e-05)
  %7: float32[b, s, 40] = aten::gelu(%4)
  %8: float32[b, 40] = aten::sum.dim_IntList(%7, [1], False, dtype=None)
  %9: float32[b, 1, s] = aten::_softmax(%2, -1, False)
  %10: float32[b, 40, s]{strides=[40*s, 1, 40]} = aten::permute(%7, [0, 2, 1])
  %11: float32[b, 40, s] = aten::clone(%10, memory_format=contiguous)
  return %8, %9, %11
})";
  for (auto [b, s] : {std::pair{2, 7}, {3, 64}, {2, 131}})
    check_graph(text, {1e-4, 1e-4}, usual_ways(), backend::cpu::default_compiler(), {{1, b}, {2, s}});
}

TEST_CASE("backendule: long formulas of sizes are arguments of kernels") {
  std::string size = "s";
  for (int k = 1; k <= 6; ++k) size = fmt::format("((s + {}) % (n + {}))", size, k);
  const std::string text = fmt::format(R"(symbol s : id 1 in [2, 1024]
symbol n : id 2 in [2, 1024]
graph(%0: float32[{0} + 1, 6], %1: float32[6]) {{
  %2: float32[{0} + 1, 6] = aten::add.Tensor(%0, %1)
  %3: float32[6] = aten::sum.dim_IntList(%2, [0], False, dtype=None)
  return %2, %3
}})",
                                       size);
  const plan::Plan plan = scheduled(lowered(text), backend::cpu::host_target(), {});
  bool is_given = false;  // a kernel the value of a remainder
  for (const plan::Step& step : plan.steps)
    if (const auto* launch = std::get_if<plan::Launch>(&step))
      is_given = is_given ||
                 std::ranges::any_of(launch->sizes, [](const Expr& e) { return e.kind() == sym::Kind::Mod; });
  CHECK(is_given);
  for (auto [s, n] : {std::pair{7, 3}, {100, 9}, {2, 2}, {1000, 1000}})
    check_graph(text, {1e-4, 1e-4}, usual_ways(), backend::cpu::default_compiler(), {{1, s}, {2, n}});
}

constexpr std::string_view kSizesFromZero = R"(symbol b : id 1 in [0, 1024]
symbol c : id 2 in [0, 1024]
symbol h : id 3 in [0, 1024]
graph(%0: float32[b, c, h, h]{strides=[max(c, 1)*max(h, 1)*max(h, 1), max(h, 1)*max(h, 1), max(h, 1), 1]}) {
  %1: float32[b, h, h, c]{strides=[max(c, 1)*max(h, 1)*max(h, 1), max(h, 1), 1, max(h, 1)*max(h, 1)]} = aten::permute(%0, [0, 2, 3, 1])
  %2: float32[b, h, h, c]{strides=[max(c, 1)*max(h, 1)*max(h, 1), max(c, 1)*max(h, 1), max(c, 1), 1]} = aten::clone(%1, memory_format=contiguous)
  return %2
})";

TEST_CASE("backendule: inside of loops sizes are not zero") {
  const loop::Program program = lowered(std::string(kSizesFromZero));
  const plan::Plan plan = scheduled(program, backend::cpu::host_target(), {});
  for (const plan::Kernel& kernel : plan.kernels) CHECK(kernel.source.find("greatest") == std::string::npos);
  for (auto [b, c, h] : {std::array{2, 3, 5}, {1, 1, 1}, {0, 3, 4}, {2, 0, 4}, {2, 3, 0}})
    check_graph(std::string(kSizesFromZero), {0, 0}, usual_ways(), backend::cpu::default_compiler(),
                {{1, b}, {2, c}, {3, h}});
}

TEST_CASE("backendule: kernels with short loops are compiled for the sizes at hand as well") {
  const sym::Hints hints({std::nullopt, 2, 3, 40});
  const sym::HintScope scope(hints);
  const plan::Plan plan = scheduled(lowered(std::string(kSizesFromZero)), backend::cpu::host_target(), {});
  REQUIRE(plan.kernels.size() == 1);
  CHECK(plan.kernels.front().source.find("if (sizes[1] == 3) return run<true>(buffers") != std::string::npos);
  for (int c : {3, 1, 5, 16, 33, 0})
    check_graph(std::string(kSizesFromZero), {0, 0}, usual_ways(), backend::cpu::default_compiler(),
                {{1, 2}, {2, c}, {3, 4}});
}

TEST_CASE("backendule: loops are divided by sizes that divide them") {
  // Channels are 4 groups of q: a group is normalised where its statistics are computed.
  const std::string text = R"(symbol q : id 1 in [0, 1024]
symbol s : id 2 in [0, 1024]
graph(%0: float32[3, 4*q, s]) {
  %1: float32[3, 4*q, s], %2: float32[3, 4], %3: float32[3, 4] = aten::native_group_norm(%0, None, None, 3, 4*q, s, 4, 1e-05)
  return %1
})";
  CHECK(scheduled(lowered(text), backend::cpu::host_target(), {}).kernels.size() == 1);
  for (auto [q, s] : {std::pair{1, 1}, {2, 5}, {3, 64}, {8, 17}})
    check_graph(text, {1e-4, 1e-4}, usual_ways(), backend::cpu::default_compiler(), {{1, q}, {2, s}});
}

TEST_CASE("backendule: an index out of range is reported and harmless") {
  loop::Program program = lowered(R"(graph(%0: float32[5, 33], %1: int64[4]) {
  %2: float32[4, 33] = aten::embedding(%0, %1)
  %3: float32[4, 33] = aten::exp(%2)
  return %3
})");
  plan::Plan plan = scheduled(program, backend::cpu::host_target(), {});
  PlanRunner runner(plan, backend::cpu::default_compiler().compile(plan.kernels));
  runner.set_input({DType::Int64, {4}, {}, {0, 4, 1, 2}}, 1);
  CHECK(runner.run() == 0);
  for (int64_t bad : {int64_t{5}, int64_t{1} << 60, int64_t{-1000000000000}}) {
    runner.set_input({DType::Int64, {4}, {}, {0, 4, bad, 2}}, 1);
    CHECK(runner.run() == backend::kIndexError);
  }
}

TEST_CASE("backendule: equal layers share a kernel") {
  std::string body;
  int value = 2;
  int x = 0;
  for (int layer = 0; layer < 6; ++layer) {
    body += fmt::format(R"(  %{1}: float32[4, 32] = aten::mm(%{0}, %1)
  %{2}: float32[4, 32] = aten::add.Tensor(%{1}, %{0})
  %{3}: float32[4, 32] = aten::gelu(%{2})
)",
                        x, value, value + 1, value + 2);
    x = value + 2;
    value += 3;
  }
  loop::Program program =
      lowered(fmt::format("graph(%0: float32[4, 32], %1: float32[32, 32]) {{\n{}  return %{}\n}}", body, x));
  plan::Plan plan = scheduled(program, backend::cpu::host_target(), {});
  plan::verify(plan);
  CHECK(plan.steps.size() == 12);
  CHECK(plan.kernels.size() <= 3);  // the first reads an input, the last writes an output
  CHECK(plan.arena_bytes.constant() <= 4 * 4 * 32 * 4);
}

TEST_CASE("backendule: thousands of steps take time in proportion and no stack") {
  for (const char* line : {"aten::add.Tensor(%{}, %0)", "aten::add.Tensor(%{0}, %{0})"}) {
    CAPTURE(line);
    const auto seconds_of = [&](int steps) {
      std::string body;
      for (int k = 1; k <= steps; ++k)
        body += fmt::format("  %{}: float32[64] = {}\n", k, fmt::format(fmt::runtime(line), k - 1));
      loop::Program program =
          lowered(fmt::format("graph(%0: float32[64]) {{\n{}  return %{}\n}}", body, steps));
      plan::Plan plan;
      const double seconds =
          processor_seconds([&] { plan = scheduled(std::move(program), backend::cpu::host_target(), {}); });
      for (const plan::Kernel& kernel : plan.kernels) CHECK(kernel.source.size() < 60000);
      return seconds;
    };
    check_growth(seconds_of, 5000);
  }
}

// `layers` products of 1 MiB, the column sums of each, and at the end something for each of the sums.
std::string sums_that_are_used_late(int layers, bool writes) {
  std::string inputs = "%0: float32[512, 512], %1: float32[512, 512]", body, updates, results;
  int next = 2 + layers, previous = 0;
  for (int k = 0; k < layers; ++k) {
    inputs += fmt::format(", %{}: float32[512]", 2 + k);
    const int product = next++, sum = next++;
    body += fmt::format("  %{}: float32[512, 512] = aten::mm(%{}, %1)\n", product, previous);
    body += fmt::format("  %{}: float32[512] = aten::sum.dim_IntList(%{}, [0], False, dtype=None)\n", sum,
                        product);
    const int updated = 2 + 3 * layers + k;
    updates +=
        fmt::format("  %{}: float32[512] = aten::add.Tensor(%{}, %{}, alpha=1)\n", updated, 2 + k, sum);
    results += writes ? fmt::format("  mutate input {} = %{}\n", 2 + k, updated) : "";
    previous = product;
  }
  std::string outputs = writes ? fmt::format("%{}", previous) : "";
  for (int k = 0; k < layers && !writes; ++k)
    outputs += fmt::format("{}%{}", k == 0 ? "" : ", ", 2 + 3 * layers + k);
  return fmt::format("graph({}) {{\n{}{}{}  return {}\n}}\n", inputs, body, updates, results, outputs);
}

TEST_CASE("backendule: a kernel that waits for the end holds no large memory") {
  ops::intern_schemas();
  for (const bool writes : {false, true}) {
    CAPTURE(writes);
    const plan::Plan plan = scheduled(loop::lower(graph::parse(sums_that_are_used_late(200, writes))),
                                      backend::cpu::host_target(), {.parallelism = 2});
    // Without a rule against it each sum is taken with its update, and all products are held until then.
    CHECK(plan.arena_bytes.constant() < 8 << 20);
  }
}

TEST_CASE("backendule: what reads another row is not fused") {
  check_graph(R"(graph(%0: float32[6, 20]) {
  %1: float32[6, 20] = aten::tanh(%0)
  %2: float32[6, 20] = aten::flip(%1, [0])
  %3: float32[6, 20] = aten::flip(%1, [1])
  %4: float32[6, 20] = aten::add.Tensor(%2, %3)
  %5: float32[6, 20] = aten::mul.Tensor(%4, %1)
  %6: float32[20] = aten::sum.dim_IntList(%5, [0], False, dtype=None)
  %7: float32[6, 20] = aten::sub.Tensor(%5, %6)
  %8: float32[6, 1] = aten::amax(%7, [1], True)
  %9: float32[6, 20] = aten::div.Tensor(%7, %8)
  return %9, %1
})");
}

namespace {

// A graph of random operators over a few shapes that broadcast together.
std::string random_graph(unsigned seed) {
  std::mt19937 g(seed);
  auto pick = [&](size_t n) { return static_cast<size_t>(g() % n); };
  const int64_t a = std::array{1, 2, 3, 5}[pick(4)], b = std::array{1, 4, 7, 16}[pick(4)],
                c = std::array{3, 16, 33, 64}[pick(4)];
  struct Known {
    int id;
    std::vector<int64_t> sizes;
  };
  auto text = [](const std::vector<int64_t>& s) { return fmt::format("[{}, {}, {}]", s[0], s[1], s[2]); };
  std::vector<Known> known = {{0, {a, b, c}}, {1, {1, b, c}}, {2, {a, b, 1}}, {3, {a, b, c}}};
  std::string head = "graph(";
  for (const Known& k : known) head += fmt::format("{}%{}: float32{}", k.id ? ", " : "", k.id, text(k.sizes));
  std::string body;
  int next = 4;
  auto add = [&](std::vector<int64_t> sizes, const std::string& call) {
    body += fmt::format("  %{}: float32{} = aten::{}\n", next, text(sizes), call);
    known.push_back({next++, std::move(sizes)});
  };
  for (int step = 0; step < 14; ++step) {
    Known x = known[pick(known.size())], y = known[pick(known.size())];
    switch (pick(8)) {
      case 0:
      case 1:
      case 2: {
        std::vector<int64_t> sizes(3);
        bool fits = true;
        for (size_t d = 0; d < 3; ++d) {
          sizes[d] = std::max(x.sizes[d], y.sizes[d]);
          fits = fits && (x.sizes[d] == y.sizes[d] || std::min(x.sizes[d], y.sizes[d]) == 1);
        }
        if (fits)
          add(sizes, fmt::format("{}(%{}, %{})", std::array{"add.Tensor", "mul.Tensor", "maximum"}[pick(3)],
                                 x.id, y.id));
        break;
      }
      case 3:
        add(x.sizes, fmt::format("{}(%{})", std::array{"tanh", "relu", "sigmoid"}[pick(3)], x.id));
        break;
      case 4:
      case 5: {
        size_t d = pick(3);
        auto sizes = x.sizes;
        sizes[d] = 1;
        if (pick(2))
          add(sizes, fmt::format("amax(%{}, [{}], True)", x.id, d));
        else
          add(sizes, fmt::format("mean.dim(%{}, [{}], True, dtype=None)", x.id, d));
        break;
      }
      case 6:
        add(x.sizes, fmt::format("_softmax(%{}, {}, False)", x.id, pick(3)));
        break;
      default:
        add(x.sizes, fmt::format("flip(%{}, [{}])", x.id, pick(3)));
    }
  }
  return head + ") {\n" + body + fmt::format("  return %{}, %{}\n}}", next - 1, next - 2);
}

}  // namespace

TEST_CASE("backendule: random graphs agree with the interpreter") {
  unsigned count =
      std::getenv("OXYFUEL_FUZZ") ? static_cast<unsigned>(std::atoi(std::getenv("OXYFUEL_FUZZ"))) : 12;
  for (unsigned seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    std::string text = random_graph(seed);
    if (text.find("%5:") == std::string::npos) continue;
    CAPTURE(text);
    check_graph(text, {1e-3, 1e-4},
                {{backend::cpu::host_target(), true, 4}, {backend::cpu::host_target(), true, 1}});
  }
}

TEST_CASE("backendule: sums at computed rows run in parallel along the rows") {
  auto outcome = check_graph(R"(graph(%0: float32[5, 48], %1: int64[4, 9], %2: float32[4, 9, 48]) {
  %3: float32[5, 48] = aten::index_put(%0, [%1], %2, True)
  return %3
})");
  const plan::Slices& launch = slices(outcome.plan.steps.back());
  CHECK(launch.extent.constant() == 48);
  CHECK(launch.grain < 1000000);
}

TEST_CASE("backendule: a copy of a part of memory begins where the part does") {
  auto numbers = check_graph(R"(graph(%0: float32[6, 3]{offset=6}, %1: float32[2, 3]) {
  %2: float32[6, 3]{offset=6} = aten::slice_scatter(%0, %1, 0, 1, 3, 1)
  %3: float32[6, 3]{offset=6} = aten::as_strided_scatter(%0, %1, [2, 3], [3, 1], 9)
  %4: float32[6, 3] = aten::add.Tensor(%2, %3)
  return %2, %3, %4
})");
  for (size_t k = 0; k < 2; ++k) CHECK(numbers.plan.outputs[k].view.offset == Expr(6));
  CHECK(numbers.plan.outputs[2].view.offset == Expr(0));
  for (const int64_t rows : {0, 1, 5}) {
    CAPTURE(rows);
    auto symbolic = check_graph(R"(symbol s0: id 1 in [0, 100]
graph(%0: float32[3, s0]{strides=[1, 3], offset=4*s0}, %1: float32[s0]) {
  %2: float32[3, s0]{strides=[1, 3], offset=4*s0} = aten::select_scatter(%0, %1, 0, 1)
  return %2
})",
                                {}, usual_ways(), backend::cpu::default_compiler(), {{1, rows}});
    CHECK(symbolic.plan.outputs[0].view.offset == Expr(4) * symbolic.plan.outputs[0].view.sizes[1]);
  }
}
