// Graphs through lowering, scheduling, code generation and a compiler, compared with the loop interpreter.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sched_graph_checks.h"

using namespace oxy;
using namespace oxy::testing;

TEST_CASE("schedule: element-wise chains become one kernel at every size") {
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

TEST_CASE("schedule: every element type") {
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

TEST_CASE("schedule: softmax and layer norm stay in a row") {
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

TEST_CASE("schedule: reductions over rows, columns and everything") {
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

TEST_CASE("schedule: index loads, argmax, windows and transposes") {
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
  check_graph(R"(graph(%0: float32[2, 5, 9, 11]) {
  %1: float32[2, 5, 5, 6], %2: int64[2, 5, 5, 6] = aten::max_pool2d_with_indices(%0, [3, 3], [2, 2], [1, 1], [1, 1], False)
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

TEST_CASE("schedule: concatenation, padding and losses") {
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

TEST_CASE("schedule: long reductions to few results are split") {
  auto outcome = check_graph(R"(graph(%0: float32[3, 512, 257]) {
  %1: float32[] = aten::sum(%0, dtype=None)
  %2: float32[3] = aten::amax(%0, [1, 2], False)
  %3: float32[] = aten::mean(%0, dtype=None)
  return %1, %2, %3
})",
                             {1e-4, 1e-2});
  int64_t widest = 0;
  for (const plan::Step& step : outcome.plan.steps) widest = std::max(widest, std::get<plan::Launch>(step).extent.constant());
  CHECK(widest >= 64);
}
