// The mathematics of generated kernels against double precision, over many values and the edge cases.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backend/graph_checks.h"
#include "backend/plan_runner.h"
#include "backend/shared/schedule.h"
#include "loop/builder.h"
#include "loop/variables.h"

using namespace oxy;
using loop::Op;

namespace {

// Runs `op` over the values, as float32.
std::vector<float> run_unary(Op op, const std::vector<float>& values) {
  auto n = static_cast<int64_t>(values.size());
  loop::Program program;
  const auto in =
      program.buffers.add({.name = "x", .sizes = {n}, .kind = loop::BufferKind::Input, .source = 0});
  const auto out = program.buffers.add({.name = "y", .sizes = {n}});
  loop::Computation c;
  Expr i = loop::loop_variable(0, n);
  c.loops = {{i, n}};
  loop::BodyBuilder b;
  loop::InstId value = b.unary(op, b.load(in, DType::Float32, {i})).id;
  c.body = b.take({&value});
  c.stores = {{out, {i}, value}};
  program.steps.add(std::move(c));
  program.outputs.push_back({.view = {out, {n}, {1}}});
  plan::Plan plan = oxy::testing::scheduled(std::move(program), backend::cpu::host_target(), {});
  oxy::testing::PlanRunner runner(plan, backend::cpu::default_compiler().compile(plan.kernels));
  loop::Array x{DType::Float32, {n}, {values.begin(), values.end()}, {}};
  runner.set_input(x, 0);
  CHECK(runner.run() == 0);
  loop::Array y = runner.output(0);
  return {y.floats.begin(), y.floats.end()};
}

// Distance of `got` from the exact result in units of float32's last place there.
double ulps(float got, double exact) {
  auto nearest = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  if (got == nearest) return 0;
  if (std::isinf(nearest) || std::isnan(got) || std::isinf(got)) {
    // One step from overflow is one unit.
    bool next =
        std::isinf(nearest) != std::isinf(got) && std::abs(std::isinf(got) ? nearest : got) > 3.402e38f;
    return next ? 1 : 1e9;
  }
  double unit = std::ldexp(1.0, std::max(std::ilogb(std::max(std::abs(nearest), 0x1p-126f)) - 23, -149));
  return std::abs(static_cast<double>(got) - exact) / unit;
}

std::vector<float> sample(float low, float high) {
  std::vector<float> values;
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (float v : {0.0f,       -0.0f,      inf,    -inf,    std::numeric_limits<float>::quiet_NaN(),
                  1.0f,       -1.0f,      0.5f,   2.0f,    0x1p-149f,
                  -0x1p-149f, 0x1p-126f,  1e-30f, -1e-30f, 3.4e38f,
                  -3.4e38f,   88.72f,     88.73f, -87.4f,  -103.9f,
                  -104.1f,    127.9f,     128.1f, -149.5f, 0.99999994f,
                  1.0000001f, 16777216.0f})
    values.push_back(v);
  for (int k = 0; k <= 20000; ++k) values.push_back(low + (high - low) * static_cast<float>(k) / 20000);
  // Every magnitude, both signs.
  for (uint32_t bits = 1000; bits < 0x7f800000u; bits += 150001) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(-std::bit_cast<float>(bits));
  }
  return values;
}

struct Function {
  Op op;
  double (*exact)(double);
  float low, high;
  double limit;
};

}  // namespace

TEST_CASE("kernel mathematics: float32 functions are within a few units in the last place") {
  const Function functions[] = {
      {Op::Exp, [](double x) { return std::exp(x); }, -110, 95, 1.5},
      {Op::Exp2, [](double x) { return std::exp2(x); }, -155, 130, 1.5},
      {Op::Expm1, [](double x) { return std::expm1(x); }, -20, 95, 2},
      {Op::Log, [](double x) { return std::log(x); }, 0, 4, 2},
      {Op::Log2, [](double x) { return std::log2(x); }, 0, 4, 2.5},
      {Op::Log10, [](double x) { return std::log10(x); }, 0, 4, 2.5},
      {Op::Log1p, [](double x) { return std::log1p(x); }, -1, 3, 2.5},
      {Op::Tanh, [](double x) { return std::tanh(x); }, -10, 10, 2.5},
      {Op::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 3},
      {Op::Erf, [](double x) { return std::erf(x); }, -5, 5, 2.5},
      {Op::Erfc, [](double x) { return std::erfc(x); }, -5, 9, 1},
      {Op::Sin, [](double x) { return std::sin(x); }, -100, 100, 1},
      {Op::Cos, [](double x) { return std::cos(x); }, -100, 100, 1},
      {Op::Tan, [](double x) { return std::tan(x); }, -10, 10, 1},
      {Op::Asin, [](double x) { return std::asin(x); }, -1, 1, 1},
      {Op::Acos, [](double x) { return std::acos(x); }, -1, 1, 1},
      {Op::Atan, [](double x) { return std::atan(x); }, -10, 10, 1},
      {Op::Sinh, [](double x) { return std::sinh(x); }, -90, 90, 1},
      {Op::Cosh, [](double x) { return std::cosh(x); }, -90, 90, 1},
      {Op::Asinh, [](double x) { return std::asinh(x); }, -90, 90, 1},
      {Op::Acosh, [](double x) { return std::acosh(x); }, 1, 90, 1},
      {Op::Atanh, [](double x) { return std::atanh(x); }, -1, 1, 1},
      {Op::Sqrt, [](double x) { return std::sqrt(x); }, 0, 9, 0.6},
      {Op::Rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0, 9, 1.6},
      {Op::Reciprocal, [](double x) { return 1 / x; }, -9, 9, 0.6},
      {Op::Floor, [](double x) { return std::floor(x); }, -9, 9, 0},
      {Op::Ceil, [](double x) { return std::ceil(x); }, -9, 9, 0},
      {Op::Trunc, [](double x) { return std::trunc(x); }, -9, 9, 0},
      {Op::Round, [](double x) { return std::nearbyint(x); }, -9, 9, 0},
      {Op::Abs, [](double x) { return std::abs(x); }, -9, 9, 0},
      {Op::Neg, [](double x) { return -x; }, -9, 9, 0},
  };
  for (const Function& f : functions) {
    CAPTURE(loop::op_name(f.op));
    std::vector<float> x = sample(f.low, f.high);
    std::vector<float> y = run_unary(f.op, x);
    double worst = 0;
    float at = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      double off = ulps(y[k], f.exact(x[k]));
      if (f.op == Op::Sigmoid && y[k] == 0 && f.exact(x[k]) < 0x1p-126)
        off = 0;  // as eager: exp(-x) overflows
      if (!(off <= worst)) {
        worst = off;
        at = x[k];
      }
    }
    CAPTURE(at);
    CHECK(worst <= f.limit);
  }
}

TEST_CASE("kernel mathematics: the normal distribution is within rounding of 1") {
  const std::vector<float> x = sample(-6, 6);
  const std::vector<float> y = run_unary(Op::NormalCdf, x);
  for (size_t k = 0; k < x.size(); ++k) {
    CAPTURE(x[k]);
    const double exact = 0.5 * std::erfc(-x[k] * std::sqrt(0.5));
    CHECK((std::isnan(x[k]) ? std::isnan(y[k]) : std::abs(y[k] - exact) <= 0x1p-22));
  }
}

TEST_CASE("kernel mathematics: zeros keep their signs") {
  for (Op op : {Op::Sin, Op::Tanh, Op::Erf, Op::Expm1, Op::Log1p, Op::Sqrt, Op::Floor, Op::Trunc, Op::Asin}) {
    CAPTURE(loop::op_name(op));
    CHECK(std::signbit(run_unary(op, {-0.0f})[0]));
    CHECK_FALSE(std::signbit(run_unary(op, {0.0f})[0]));
  }
}

TEST_CASE("kernel mathematics: maxima over rows and columns carry NaN") {
  for (bool rows : {true, false})
    for (size_t at : {0, 5, 63, 64, 66}) {
      CAPTURE(rows);
      CAPTURE(at);
      constexpr int64_t kRows = 67, kColumns = 67;
      loop::Program program;
      const auto in = program.buffers.add(
          {.name = "x", .sizes = {kRows, kColumns}, .kind = loop::BufferKind::Input, .source = 0});
      const auto out = program.buffers.add({.name = "y", .sizes = {kRows}});
      loop::Computation c;
      Expr i = loop::loop_variable(0, kRows);
      Expr r = loop::reduction_variable(0, kColumns);
      c.loops = {{i, kRows}};
      c.reduction = {{r, kColumns}};
      c.kind = loop::ReductionKind::Max;
      loop::BodyBuilder b;
      loop::Index index = rows ? loop::Index{i, r} : loop::Index{r, i};
      c.reduced = b.load(in, DType::Float32, index).id;
      c.body = b.take({&c.reduced});
      c.stores = {{out, {i}}};
      program.steps.add(std::move(c));
      program.outputs.push_back({.view = {out, {kRows}, {1}}});
      plan::Plan plan = oxy::testing::scheduled(std::move(program), backend::cpu::host_target(), {});
      oxy::testing::PlanRunner runner(plan, backend::cpu::default_compiler().compile(plan.kernels));
      loop::Array x{DType::Float32, {kRows, kColumns}, std::vector<double>(kRows * kColumns, -3), {}};
      size_t row = 41;
      x.floats[rows ? row * kColumns + at : at * kColumns + row] = std::nan("");
      runner.set_input(x, 0);
      CHECK(runner.run() == 0);
      loop::Array y = runner.output(0);
      for (size_t k = 0; k < static_cast<size_t>(kRows); ++k)
        CHECK((k == row ? std::isnan(y.floats[k]) : y.floats[k] == -3));
    }
}
