// Lowerings, run by the interpreter and compared with values worked out here.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "growth.h"
#include "loop/interpreter.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"

using namespace oxy;
using loop::Array;

namespace {

loop::Program lowered(const std::string& text, bool inline_pointwise = true) {
  ops::intern_schemas();
  graph::Graph graph = graph::parse(text);
  graph::verify(graph, true);
  loop::Program program = loop::lower(graph, {.inline_pointwise = inline_pointwise, .has_scans = true});
  loop::verify(program);
  return program;
}

int64_t count(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Array floats(std::vector<int64_t> sizes, std::vector<double> values) {
  return {DType::Float32, std::move(sizes), std::move(values), {}};
}

Array ints(std::vector<int64_t> sizes, std::vector<int64_t> values) {
  return {DType::Int64, std::move(sizes), {}, std::move(values)};
}

Array ramp(std::vector<int64_t> sizes, double start = 0, double step = 1) {
  std::vector<double> values(static_cast<size_t>(count(sizes)));
  for (size_t k = 0; k < values.size(); ++k) values[k] = start + step * static_cast<double>(k);
  return floats(std::move(sizes), std::move(values));
}

// Runs the graph with pointwise inlining and without, which must agree.
std::vector<Array> run(const std::string& text, const std::vector<Array>& inputs) {
  auto result = loop::interpret(lowered(text), inputs).outputs;
  auto again = loop::interpret(lowered(text, false), inputs).outputs;
  REQUIRE(result.size() == again.size());
  for (size_t k = 0; k < result.size(); ++k) {
    REQUIRE(result[k].sizes == again[k].sizes);
    for (size_t i = 0; i < static_cast<size_t>(count(result[k].sizes)); ++i) {
      double a = result[k].number(i), b = again[k].number(i);
      bool agree = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-4 * std::abs(b) + 1e-6;
      if (!agree) FAIL(fmt::format("output {} element {}: {} inlined, {} not", k, i, a, b));
    }
  }
  return result;
}

void check_near(const Array& array, const std::vector<double>& expected) {
  REQUIRE(static_cast<size_t>(count(array.sizes)) == expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    if (std::isnan(expected[k]))
      CHECK(std::isnan(array.number(k)));
    else
      CHECK(array.number(k) == doctest::Approx(expected[k]).epsilon(1e-5));
  }
}

size_t steps(const std::string& text) {
  return lowered(text).steps.size();
}

}  // namespace

TEST_CASE("lowering: operands on the host and on a device are left to eager's operator, which refuses them") {
  const auto calls = [](const std::string& text) {
    const loop::Program program = lowered(text);
    return std::ranges::count_if(
        program.steps, [](const loop::Step& step) { return std::holds_alternative<loop::ExternCall>(step); });
  };
  for (const char* call :
       {"aten::add.Tensor(%0, %1, alpha=1)", "aten::maximum(%0, %1)", "aten::atan2(%0, %1)"}) {
    const std::string body =
        fmt::format(") {{\n  %2: float32[4]{{device=cuda:0}} = {}\n  return %2\n}}", call);
    CHECK(calls("graph(%0: float32[4]{device=cuda:0}, %1: float32[4]" + body) == 1);
    CHECK(calls("graph(%0: float32[4]{device=cuda:0}, %1: float32[4]{device=cuda:0}" + body) == 0);
  }
}

TEST_CASE("lowering: element-wise operators promote, broadcast and are inlined") {
  std::string text = R"(graph(%0: float32[2, 3], %1: float32[3]) {
  %2: float32[2, 3] = aten::add.Tensor(%0, %1, alpha=2)
  %3: float32[2, 3] = aten::relu(%2)
  %4: float32[2, 3] = aten::mul.Tensor(%3, 0.5)
  return %4
})";
  CHECK(steps(text) == 1);
  auto out = run(text, {ramp({2, 3}, -3), floats({3}, {1, 0, -1})});
  check_near(out[0], {0, 0, 0, 1, 0.5, 0});

  out = run(R"(graph(%0: int64[3], %1: float32[3]) {
  %2: float32[3] = aten::div.Tensor(%0, 2)
  %3: bool[3] = aten::gt.Tensor(%0, %1)
  %4: float32[3] = aten::where.self(%3, %2, %1)
  %5: float32[3] = aten::clamp(%4, None, 1.5)
  %6: int64[3] = aten::remainder.Scalar(%0, -3)
  %7: float32[3] = aten::pow.Tensor_Scalar(%1, 3)
  return %5, %6, %7
})",
            {ints({3}, {1, 2, 7}), floats({3}, {0, 5, 2})});
  check_near(out[0], {0.5, 1.5, 1.5});
  check_near(out[1], {-2, -1, -2});
  check_near(out[2], {0, 125, 8});
}

TEST_CASE("lowering: activations") {
  std::vector<double> x = {-4, -1, -0.25, 0, 0.5, 3};
  auto text = [](const char* op) {
    return fmt::format("graph(%0: float32[6]) {{\n  %1: float32[6] = aten::{}\n  return %1\n}}", op);
  };
  auto expect = [&](const char* op, double (*fn)(double)) {
    CAPTURE(op);
    std::vector<double> y;
    for (double v : x) y.push_back(fn(v));
    check_near(run(text(op), {floats({6}, x)})[0], y);
  };
  expect("gelu(%0)", [](double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))); });
  expect("gelu(%0, approximate=\"tanh\")", [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  });
  expect("silu(%0)", [](double v) { return v / (1 + std::exp(-v)); });
  expect("hardswish(%0)", [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; });
  expect("leaky_relu(%0, 0.1)", [](double v) { return v > 0 ? v : 0.1 * v; });
  expect("elu(%0, 2.0, 1, 1)", [](double v) { return v > 0 ? v : 2 * std::expm1(v); });
  expect("softplus(%0)", [](double v) { return std::log1p(std::exp(v)); });
  expect("mish(%0)", [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  expect("threshold(%0, 0.25, 7)", [](double v) { return v <= 0.25 ? 7 : v; });
}

TEST_CASE("lowering: views cost nothing and compose") {
  std::string text = R"(graph(%0: float32[2, 3, 4]) {
  %1: float32[3, 2, 4]{strides=[4, 12, 1]} = aten::transpose.int(%0, 0, 1)
  %2: float32[3, 8] = aten::_unsafe_view(%1, [3, 8])
  %3: float32[3, 4] = aten::slice.Tensor(%2, 1, 2, -2, 1)
  %4: float32[3]{strides=[4]} = aten::select.int(%3, 1, -1)
  %5: float32[3, 1] = aten::unsqueeze(%4, 1)
  %6: float32[3, 5]{strides=[1, 0]} = aten::expand(%5, [3, 5])
  %7: float32[3, 5] = aten::mul.Tensor(%6, 2)
  return %7
})";
  CHECK(steps(text) == 1);
  auto out = run(text, {ramp({2, 3, 4})});
  // %2[i][5] = x[1][i][1]
  std::vector<double> expected;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) expected.push_back(2 * (12 + 4 * i + 1));
  check_near(out[0], expected);
}

TEST_CASE("lowering: reductions") {
  auto out = run(R"(graph(%0: float32[2, 3]) {
  %1: float32[2] = aten::sum.dim_IntList(%0, [1], False)
  %2: float32[1, 3] = aten::mean.dim(%0, [0], True)
  %3: float32[] = aten::amax(%0)
  %4: int64[2] = aten::argmin(%0, 1)
  %5: int64[] = aten::argmax(%0)
  %6: float32[2], %7: int64[2] = aten::max.dim(%0, -1)
  %8: float32[2] = aten::var.correction(%0, [1], correction=1)
  %9: float32[] = aten::linalg_vector_norm(%0)
  %10: float32[2] = aten::logsumexp(%0, [1])
  return %1, %2, %3, %4, %5, %6, %7, %8, %9, %10
})",
                 {floats({2, 3}, {1, -2, 3, 4, 0, -5})});
  check_near(out[0], {2, -1});
  check_near(out[1], {2.5, -1, -1});
  check_near(out[2], {4});
  check_near(out[3], {1, 2});
  check_near(out[4], {3});
  check_near(out[5], {3, 4});
  check_near(out[6], {2, 0});
  check_near(out[7], {19.0 / 3, 61.0 / 3});
  check_near(out[8], {std::sqrt(55.0)});
  check_near(out[9],
             {std::log(std::exp(1) + std::exp(-2) + std::exp(3)), std::log(std::exp(4) + 1 + std::exp(-5))});
}

TEST_CASE("lowering: scans") {
  constexpr double kInfinity = INFINITY;
  auto out = run(R"(graph(%0: float32[2, 3], %1: int64[3], %2: float32[4]) {
  %3: float32[2, 3] = aten::cumsum(%0, -1)
  %4: float32[2, 3] = aten::cumsum(%0, 0)
  %5: float32[2, 3] = aten::cumprod(%0, 1)
  %6: int64[3] = aten::cumsum(%1, 0)
  %7: float32[3] = aten::cumprod(%1, 0, dtype=float32)
  %8: float32[4] = aten::logcumsumexp(%2, 0)
  %9: bool[2, 3] = aten::gt.Scalar(%0, 0)
  %10: int64[2, 3] = aten::cumsum(%9, 1)
  %11: float32[2, 3] = aten::flip(%0, [1])
  %12: float32[2, 3] = aten::cumsum(%11, 1)
  %13: float32[2, 3] = aten::flip(%12, [1])
  return %3, %4, %5, %6, %7, %8, %10, %13
})",
                 {floats({2, 3}, {1, -2, 3, 4, 0, -5}), ints({3}, {2, -3, 4}),
                  floats({4}, {-kInfinity, -kInfinity, 0, 1})});
  check_near(out[0], {1, -1, 2, 4, 4, -1});
  check_near(out[1], {1, -2, 3, 5, -2, -2});
  check_near(out[2], {1, -2, -6, 4, 0, 0});
  check_near(out[3], {2, -1, 3});
  check_near(out[4], {2, -6, -24});
  CHECK(out[5].number(1) == -kInfinity);
  CHECK(out[5].number(2) == 0);
  CHECK(out[5].number(3) == doctest::Approx(std::log(1 + std::exp(1))));
  check_near(out[6], {1, 1, 2, 1, 1, 1});
  check_near(out[7], {2, 1, 3, -1, -5, -5});

  // What the scan reads is part of it.
  const std::string halves = R"(graph(%0: bfloat16[2, 300]) {
  %1: float32[2, 300] = aten::_to_copy(%0, dtype=float32)
  %2: float32[2, 300] = aten::mul.Tensor(%1, 0.5)
  %3: float32[2, 300] = aten::cumsum(%2, 1)
  return %3
})";
  CHECK(steps(halves) == 1);
  const loop::Program narrow = lowered(R"(graph(%0: bfloat16[300]) {
  %1: bfloat16[300] = aten::cumsum(%0, 0)
  return %1
})");
  CHECK(std::get<loop::Computation>(narrow.steps.back()).accumulate == DType::Float32);
}

TEST_CASE("lowering: which scans are eager's") {
  const auto is_called = [](const std::string& sizes, const std::string& options,
                            loop::LoweringOptions lowering) {
    const std::string text =
        fmt::format("symbol s0: id 1 in [2, 100000]\ngraph(%0: float32[{0}]) {{\n  %1: {1}\n  return %1\n}}",
                    sizes, fmt::format(fmt::runtime(options), sizes));
    ops::intern_schemas();
    const loop::Program program = loop::lower(graph::parse(text), lowering);
    loop::verify(program);
    return std::holds_alternative<loop::ExternCall>(program.steps.back());
  };
  const std::string sum = "float32[{}] = aten::cumsum(%0, 0)";
  CHECK_FALSE(is_called("16384", sum, {.has_scans = true}));
  CHECK(is_called("16385", sum, {.has_scans = true}));  // one row, which many programs may share
  CHECK(is_called("s0", sum, {.has_scans = true}));
  CHECK_FALSE(is_called("s0, 7", sum, {.has_scans = true}));
  CHECK_FALSE(is_called("1, 7", sum, {.has_scans = true}));
  CHECK(is_called("3, 7", sum, {}));
  CHECK(is_called("3, 7", sum, {.deterministic = true, .has_scans = true}));
  CHECK(is_called("3, 7", "int8[{}] = aten::cumsum(%0, 0, dtype=int8)", {.has_scans = true}));
}

TEST_CASE("lowering: softmax is one reduction and one pointwise pass, layer norm too") {
  std::string text = R"(graph(%0: float32[2, 3]) {
  %1: float32[2, 3] = aten::_softmax(%0, -1, False)
  return %1
})";
  CHECK(steps(text) == 2);
  auto out = run(text, {floats({2, 3}, {1, 2, 3, -INFINITY, 0, 0})});
  double z = std::exp(1) + std::exp(2) + std::exp(3);
  check_near(out[0], {std::exp(1) / z, std::exp(2) / z, std::exp(3) / z, 0, 0.5, 0.5});
  out = run(R"(graph(%0: float32[2, 2]) {
  %1: float32[2, 2] = aten::_safe_softmax(%0, 1)
  %2: float32[2, 2] = aten::_log_softmax(%0, 1, False)
  return %1, %2
})",
            {floats({2, 2}, {-INFINITY, -INFINITY, 0, 0})});
  check_near(out[0], {0, 0, 0.5, 0.5});
  check_near(out[1], {NAN, NAN, -std::log(2.0), -std::log(2.0)});

  text = R"(graph(%0: float32[2, 4], %1: float32[4], %2: float32[4]) {
  %3: float32[2, 4], %4: float32[2, 1], %5: float32[2, 1] = aten::native_layer_norm(%0, [4], %1, %2, 0.0)
  return %3
})";
  CHECK(steps(text) == 2);
  out = run(text, {ramp({2, 4}), floats({4}, {1, 1, 2, 1}), floats({4}, {0, 0, 0, 1})});
  double s = std::sqrt(1.25);
  check_near(out[0], {-1.5 / s, -0.5 / s, 1 / s, 1.5 / s + 1, -1.5 / s, -0.5 / s, 1 / s, 1.5 / s + 1});
}

TEST_CASE("lowering: RMS norm") {
  const std::string text = R"(graph(%0: float32[2, 4], %1: float32[4]) {
  %2: float32[2, 4], %3: float32[2, 1] = aten::_fused_rms_norm(%0, [4], %1, 0.5)
  return %2, %3
})";
  CHECK(steps(text) == 3);
  auto out = run(text, {floats({2, 4}, {1, 2, 1, 0, 4, 0, 0, 2}), floats({4}, {1, 1, 2, 1})});
  const double first = 1 / std::sqrt(2.0), second = 1 / std::sqrt(5.5);
  check_near(out[0], {first, 2 * first, 2 * first, 0, 4 * second, 0, 0, 2 * second});
  check_near(out[1], {first, second});
  // Without a number it is that of the type which is computed in.
  out = run(R"(graph(%0: bfloat16[2, 2], %1: float64[1, 2]) {
  %2: bfloat16[2, 2], %3: float32[2, 1] = aten::_fused_rms_norm(%0, [2], None, None)
  %4: float64[1, 2], %5: float64[1, 1] = aten::_fused_rms_norm(%1, [2], None, None)
  return %3, %5
})",
            {{DType::BFloat16, {2, 2}, {0, 0, 1, 1}, {}}, {DType::Float64, {1, 2}, {0, 0}, {}}});
  check_near(out[0], {1 / std::sqrt(1.1920928955078125e-07), 1});
  check_near(out[1], {1 / std::sqrt(2.220446049250313e-16)});
}

TEST_CASE("lowering: batch norm and group norm") {
  auto out =
      run(R"(graph(%0: float32[1, 2, 1, 2], %1: float32[2], %2: float32[2], %3: float32[2], %4: float32[2]) {
  %5: float32[1, 2, 1, 2], %6: float32[0], %7: float32[0] = aten::native_batch_norm(%0, %1, %2, %3, %4, False, 0.1, 0.0)
  %8: float32[1, 2, 1, 2], %9: float32[1, 1], %10: float32[1, 1] = aten::native_group_norm(%0, %1, None, 1, 2, 2, 1, 0.0)
  return %5, %8, %9
})",
          {floats({1, 2, 1, 2}, {1, 2, 3, 6}), floats({2}, {2, 1}), floats({2}, {0, 1}), floats({2}, {1, 2}),
           floats({2}, {4, 16})});
  check_near(out[0], {0, 1, 1.25, 2});
  double s = std::sqrt(3.5);
  check_near(out[1], {-4 / s, -2 / s, 0, 3 / s});
  check_near(out[2], {3});
}

TEST_CASE("lowering: indexing is checked") {
  std::string text = R"(graph(%0: float32[3, 2], %1: int64[2, 2]) {
  %2: float32[2, 2, 2] = aten::embedding(%0, %1)
  %3: float32[2, 2] = aten::gather(%0, 0, %1)
  %4: float32[2, 2, 2] = aten::index.Tensor(%0, [%1])
  return %2, %3, %4
})";
  auto out = run(text, {ramp({3, 2}), ints({2, 2}, {0, 2, 1, 1})});
  check_near(out[0], {0, 1, 4, 5, 2, 3, 2, 3});
  check_near(out[1], {0, 5, 2, 3});
  check_near(out[2], {0, 1, 4, 5, 2, 3, 2, 3});
  CHECK_THROWS_AS(loop::interpret(lowered(text), {ramp({3, 2}), ints({2, 2}, {0, 3, 1, 1})}), UserError);
  CHECK_THROWS_AS(loop::interpret(lowered(text), {ramp({3, 2}), ints({2, 2}, {0, -1, 1, 1})}), UserError);

  out = run(R"(graph(%0: float32[2, 3, 4], %1: int64[2], %2: int64[2, 1]) {
  %3: float32[2, 2, 3] = aten::index.Tensor(%0, [%2, None, %1])
  %4: float32[2, 2, 4] = aten::index.Tensor(%0, [%2, %1])
  return %3, %4
})",
            {ramp({2, 3, 4}), ints({2}, {-1, 0}), ints({2, 1}, {1, 0})});
  check_near(out[0], {15, 19, 23, 12, 16, 20, 3, 7, 11, 0, 4, 8});
  check_near(out[1], {20, 21, 22, 23, 12, 13, 14, 15, 8, 9, 10, 11, 0, 1, 2, 3});
}

TEST_CASE("lowering: writes into a part") {
  auto out = run(R"(graph(%0: float32[2, 4], %1: float32[2, 2], %2: int64[2], %3: int64[2, 1]) {
  %4: float32[2, 4] = aten::slice_scatter(%0, %1, 1, 1, 4, 2)
  %5: float32[2, 4] = aten::select_scatter(%0, %2, 1, -1)
  %6: float32[2, 4] = aten::index_put(%0, [%2, None], %3)
  %7: float32[2, 4] = aten::scatter_add(%0, 1, %3, %1)
  %8: float32[4, 6] = aten::constant_pad_nd(%0, [1, 1, 2, 0], 9)
  return %4, %7, %8, %5, %6
})",
                 {ramp({2, 4}), floats({2, 2}, {-1, -2, -3, -4}), ints({2}, {0, 1}), ints({2, 1}, {3, 0})});
  check_near(out[0], {0, -1, 2, -2, 4, -3, 6, -4});
  check_near(out[1], {0, 1, 2, 2, 1, 5, 6, 7});
  check_near(out[2], {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 1, 2, 3, 9, 9, 4, 5, 6, 7, 9});
  check_near(out[3], {0, 1, 2, 0, 4, 5, 6, 1});
  check_near(out[4], {3, 3, 3, 3, 0, 0, 0, 0});
}

TEST_CASE("lowering: a scatter of one element a row is a choice") {
  const std::string text = R"(graph(%0: int64[3, 1], %1: float32[3, 2]) {
  %2: float32[3, 4] = aten::full([3, 4], 0.5, dtype=float32, layout=None, device=cpu, pin_memory=None)
  %3: float32[3, 4] = aten::scatter.src(%2, 1, %0, %1)
  %4: float32[3, 1] = aten::sum.dim_IntList(%3, [1], True, dtype=None)
  %5: float32[3, 4] = aten::sub.Tensor(%3, %4)
  return %5
})";
  // The indices with their checks, the sum, and the result: the scattered tensor has no memory.
  CHECK(steps(text) == 3);
  auto out = run(text, {ints({3, 1}, {3, 0, 1}), ramp({3, 2}, 1)});
  check_near(out[0], {-2, -2, -2, -1.5, -1.5, -4, -4, -4, -6, -1.5, -6, -6});
  CHECK_THROWS_AS(loop::interpret(lowered(text), {ints({3, 1}, {3, 4, 1}), ramp({3, 2}, 1)}), UserError);
  CHECK_THROWS_AS(loop::interpret(lowered(text), {ints({3, 1}, {3, -1, 1}), ramp({3, 2}, 1)}), UserError);

  const std::string sums = R"(graph(%0: int64[1, 3], %1: float32[2, 3]) {
  %2: float32[2, 3] = aten::exp(%1)
  %3: float32[2, 3] = aten::log(%2)
  %4: float32[2, 3] = aten::scatter_add(%3, 0, %0, %1)
  %5: float32[2, 3] = aten::neg(%1)
  %6: float32[2, 3] = aten::scatter.value_reduce(%5, 0, %0, 3, reduce="multiply")
  %7: float32[2, 3] = aten::full_like(%1, 2)
  %8: float32[2, 3] = aten::scatter_reduce.two(%7, 0, %0, %1, "prod")
  %9: float32[2, 3] = aten::full_like(%1, 2)
  %10: float32[2, 3] = aten::scatter.value(%9, 0, %0, 7)
  return %4, %6, %8, %10
})";
  out = loop::interpret(lowered(sums), {ints({1, 3}, {1, 0, 1}), ramp({2, 3}, 1)}).outputs;
  check_near(out[0], {1, 4, 3, 5, 5, 9});
  check_near(out[1], {-1, -6, -3, -12, -5, -18});
  check_near(out[2], {2, 4, 2, 2, 2, 6});
  check_near(out[3], {2, 7, 2, 7, 2, 7});
}

TEST_CASE("lowering: joins store into slices, or are inlined into arithmetic") {
  std::string text = R"(graph(%0: float32[2, 2], %1: float32[2, 1]) {
  %2: float32[2, 3] = aten::cat([%0, %1], 1)
  %3: float32[2, 2, 2] = aten::stack([%0, %0], 1)
  return %2, %3
})";
  CHECK(steps(text) == 4);
  auto out = run(text, {ramp({2, 2}), floats({2, 1}, {8, 9})});
  check_near(out[0], {0, 1, 8, 2, 3, 9});
  check_near(out[1], {0, 1, 0, 1, 2, 3, 2, 3});
  // The rotation of rotary embeddings: one kernel.
  text = R"(graph(%0: float32[2, 4], %1: float32[4]) {
  %2: float32[2, 2]{strides=[4, 1], offset=2} = aten::slice.Tensor(%0, 1, 2, 4)
  %3: float32[2, 2]{strides=[4, 1]} = aten::slice.Tensor(%0, 1, 0, 2)
  %4: float32[2, 2] = aten::neg(%2)
  %5: float32[2, 4] = aten::cat([%4, %3], -1)
  %6: float32[2, 4] = aten::mul.Tensor(%5, %1)
  return %6
})";
  CHECK(steps(text) == 1);
  check_near(run(text, {ramp({2, 4}), floats({4}, {1, 1, 2, 2})})[0], {-2, -3, 0, 2, -6, -7, 8, 10});
}

TEST_CASE("lowering: creation") {
  auto out = run(R"(graph(%0: float32[2, 3]) {
  %1: int64[4] = aten::arange.start_step(2, 10, 2)
  %2: float32[2] = aten::full([2], 0.5)
  %3: float32[3] = aten::linspace(0, 1, 3)
  %4: float32[2, 2] = aten::eye(2)
  %5: float32[2, 3] = aten::tril(%0, 0)
  %6: float32[2, 3] = aten::roll(%0, [1], [1])
  %7: float32[2, 3] = aten::flip(%0, [0])
  %8: float32[2, 6] = aten::repeat(%0, [1, 2])
  return %1, %2, %3, %4, %5, %6, %7, %8
})",
                 {ramp({2, 3})});
  check_near(out[0], {2, 4, 6, 8});
  check_near(out[1], {0.5, 0.5});
  check_near(out[2], {0, 0.5, 1});
  check_near(out[3], {1, 0, 0, 1});
  check_near(out[4], {0, 0, 0, 3, 4, 0});
  check_near(out[5], {2, 0, 1, 5, 3, 4});
  check_near(out[6], {3, 4, 5, 0, 1, 2});
  check_near(out[7], {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
}

TEST_CASE("lowering: pooling and losses") {
  auto out = run(R"(graph(%0: float32[1, 1, 3, 3]) {
  %1: float32[1, 1, 2, 2], %2: int8[1, 1, 2, 2] = oxyfuel::max_pool2d_places(%0, [3, 3], [2, 2], [1, 1], [1, 1], False)
  %3: float32[1, 1, 2, 2] = aten::avg_pool2d(%0, [3, 3], [2, 2], [1, 1], False, False)
  %4: float32[1, 1, 1, 1] = aten::_adaptive_avg_pool2d(%0, [1, 1])
  %5: float32[1, 1, 6, 6] = aten::upsample_nearest2d(%0, [6, 6])
  return %1, %3, %4, %5
})",
                 {ramp({1, 1, 3, 3})});
  check_near(out[0], {4, 5, 7, 8});
  check_near(out[1], {2, 3, 5, 6});
  check_near(out[2], {4});
  CHECK(out[3].number(7) == 0);
  CHECK(out[3].number(35) == 8);

  std::string text = R"(graph(%0: float32[3, 2], %1: int64[3]) {
  %2: float32[3, 2] = aten::_log_softmax(%0, 1, False)
  %3: float32[], %4: float32[] = aten::nll_loss_forward(%2, %1, None, 1, -100)
  return %3, %4
})";
  out = run(text, {floats({3, 2}, {0, 0, 1, 3, 5, 5}), ints({3}, {0, 1, -100})});
  check_near(out[0], {(std::log(2.0) + std::log(1 + std::exp(-2))) / 2});
  check_near(out[1], {2});
}

TEST_CASE("lowering: half precision is computed in float32 and rounded when stored") {
  auto text = R"(graph(%0: bfloat16[2]) {
  %1: bfloat16[2] = aten::mul.Tensor(%0, %0)
  %2: bfloat16[2] = aten::add.Tensor(%1, 0.001)
  %3: float32[2] = aten::_to_copy(%2, dtype=float32)
  return %2, %3
})";
  Array x{DType::BFloat16, {2}, {1.0078125, 3}, {}};
  auto out = loop::interpret(lowered(text), {x}).outputs;
  CHECK(out[0].number(0) == 1.015625);
  CHECK(out[0].number(1) == 9);
}

TEST_CASE("lowering: extern calls get strided windows, or copies where strides do not express the view") {
  std::string text = R"(graph(%0: float32[2, 3], %1: float32[2, 2, 3]) {
  %2: float32[2, 3] = aten::relu(%0)
  %3: float32[3, 2]{strides=[1, 3]} = aten::t(%2)
  %4: float32[2, 2, 3]{strides=[3, 6, 1]} = aten::transpose.int(%1, 0, 1)
  %5: float32[2, 6] = aten::_unsafe_view(%4, [2, 6])
  %6: float32[3, 6] = aten::mm(%3, %5)
  return %6
})";
  loop::Program program = lowered(text);
  REQUIRE(program.steps.size() == 3);
  const auto& call = std::get<loop::ExternCall>(program.steps.back());
  CHECK(std::get<loop::BufferView>(call.args[0]).strides == std::vector<Expr>{1, 3});
  CHECK(call.writes_in_place);
  loop::InterpreterOptions options;
  options.call = [](const loop::ExternCall&, const std::vector<Array>& args) {
    Array result = ramp({3, 6}, 0, 0);
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 6; ++j)
        for (size_t k = 0; k < 2; ++k)
          result.floats[i * 6 + j] += args[0].floats[i * 2 + k] * args[1].floats[k * 6 + j];
    return std::vector{result};
  };
  auto out =
      loop::interpret(program, {floats({2, 3}, {1, -1, 2, 0, 1, 1}), ramp({2, 2, 3})}, {}, options).outputs;
  // relu(x)^T = [[1, 0], [0, 1], [2, 1]]; second operand rows: 0 1 2 6 7 8 and 3 4 5 9 10 11
  check_near(out[0], {0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11, 3, 6, 9, 21, 24, 27});
}

TEST_CASE("lowering: outputs never share memory by accident; mutations are safe to commit in order") {
  loop::Program program = lowered(R"(graph(%0: float32[2], %1: float32[2]) {
  %2: float32[2] = aten::relu(%0)
  %3: float32[2] = aten::clone(%2)
  %4: float32[1]{offset=1} = aten::slice.Tensor(%0, 0, 1, 2)
  mutate input 0 = %1
  mutate input 1 = %0
  return %2, %3, alias(input 0, %4)
})");
  CHECK(program.outputs[0].view.buffer != program.outputs[1].view.buffer);
  CHECK(program.outputs[2].view.offset == Expr(1));
  for (const auto& mutation : program.mutations)
    CHECK(program.buffers[mutation.value.buffer].kind == loop::BufferKind::Intermediate);
}

TEST_CASE("lowering: symbolic sizes") {
  loop::Program program = lowered(R"(symbol s0: id 1 in [2, 100]
graph(%0: float32[s0, 6]) {
  %1: float32[s0, 2, 3] = aten::view(%0, [s0, 2, 3])
  %2: float32[2, s0, 3]{strides=[3, 6, 1]} = aten::transpose.int(%1, 0, 1)
  %3: float32[2] = aten::sum.dim_IntList(%2, [1, 2])
  return %3
})");
  loop::InterpreterOptions options;
  options.symbol = [](int64_t id) { return id == 1 ? std::optional<int64_t>(2) : std::nullopt; };
  check_near(loop::interpret(program, {ramp({2, 6})}, {}, options).outputs[0], {24, 42});
}

TEST_CASE("lowering: the text form") {
  CHECK(loop::print(lowered(R"(graph(%0: float32[2, 3]) {
  %1: float32[2, 3] = aten::exp(%0)
  %2: float32[2] = aten::sum.dim_IntList(%1, [1])
  return %2
})")) == R"(arg0: float32[2, 3] input 0
buf1: float32[2] fixed
for i0 in 2  # exp, sum
  sum in float32 over r0 in 3
    %0 = float32 load arg0[i0, r0]
    %1 = float32 exp %0
    reduce %1
  buf1[i0] = result 0
return buf1
)");
}

TEST_CASE("lowering: long chains are linear and bodies stay bounded") {
  for (const char* op : {"aten::add.Tensor(%{0}, 1)", "aten::add.Tensor(%{0}, %{0})"}) {
    const auto seconds_of = [&](int steps) {
      std::string text = "graph(%0: float32[4]) {\n";
      for (int k = 0; k < steps; ++k)
        text += fmt::format("  %{}: float32[4] = {}\n", k + 1, fmt::format(fmt::runtime(op), k));
      text += fmt::format("  return %{}\n}}", steps);
      ops::intern_schemas();
      graph::Graph graph = graph::parse(text);
      loop::Program program;
      const double seconds = processor_seconds([&] { program = loop::lower(graph); });
      loop::verify(program);
      for (const auto& step : program.steps) CHECK(std::get<loop::Computation>(step).body.insts.size() < 200);
      return seconds;
    };
    check_growth(seconds_of, 5000);
  }
}
