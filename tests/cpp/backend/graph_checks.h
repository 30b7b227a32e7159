// Runs graphs through lowering, scheduling, code generation and a compiler, and compares with the loop
// interpreter.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/target.h"
#include "backend/plan_runner.h"
#include "backend/shared/schedule.h"
#include "loop/interpreter.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"

namespace oxy::testing {

inline int64_t count(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

inline const plan::Slices& slices(const plan::Step& step) {
  return std::get<plan::Slices>(std::get<plan::Launch>(step).shape);
}

inline double rounded(double v, DType dtype) {
  if (dtype == DType::Float32) return static_cast<float>(v);
  if (dtype == DType::BFloat16) {
    auto f = static_cast<float>(v);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    bits &= 0xffff0000u;
    std::memcpy(&f, &bits, 4);
    return f;
  }
  if (dtype == DType::Float16) return std::round(v * 64) / 64;
  return v;
}

inline Array random_array(const TensorMeta& meta, std::mt19937& generator, const Symbols& symbols = {}) {
  Array array{meta.dtype, {}, {}, {}};
  for (const Expr& e : meta.sizes) array.sizes.push_back(value_of(e, symbols));
  std::normal_distribution<double> normal;
  for (int64_t k = 0; k < count(array.sizes); ++k) {
    if (is_floating(meta.dtype))
      array.floats.push_back(rounded(normal(generator), meta.dtype));
    else
      array.ints.push_back(meta.dtype == DType::Bool ? generator() % 2
                                                     : static_cast<int64_t>(generator() % 5));
  }
  return array;
}

struct Tolerance {
  double relative = 2e-5;
  double absolute = 2e-5;
};

struct Outcome {
  plan::Plan plan;
  std::string log;
};

inline void compare(const Array& got, const Array& expected, Tolerance tolerance, std::string_view what) {
  REQUIRE(got.sizes == expected.sizes);
  REQUIRE(got.dtype == expected.dtype);
  for (size_t i = 0; i < static_cast<size_t>(count(got.sizes)); ++i) {
    double a = got.number(i), b = expected.number(i);
    bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                std::abs(a - b) <= tolerance.relative * std::abs(b) + tolerance.absolute;
    if (!same) FAIL(fmt::format("{} element {} of {}: {} instead of {}", what, i, got.sizes[0], a, b));
  }
}

inline plan::Plan scheduled(loop::Program program, const backend::cpu::Target& target,
                            const backend::ScheduleOptions& options) {
  return backend::schedule(std::move(program), *backend::cpu::make_backend(target), options);
}

struct Way {
  backend::cpu::Target target = backend::cpu::host_target();
  bool fuse = true;
  int threads = 1;
  bool all_arguments = false;
};

inline std::vector<Way> usual_ways() {
  return {{backend::cpu::make_target(backend::cpu::Isa::Scalar), true, 1},
          {backend::cpu::make_target(backend::cpu::Isa::Avx2), true, 4},
          {backend::cpu::host_target(), false, 1},
          {backend::cpu::host_target(), true, 4},
          {backend::cpu::host_target(), true, 4, true},
          {backend::cpu::host_target(), true, 1}};
}

inline loop::Program lowered(const std::string& text) {
  ops::intern_schemas();
  graph::Graph graph = graph::parse(text);
  loop::Program program = loop::lower(graph);
  loop::verify(program);
  return program;
}

// Schedules and runs the graph in each way; every one must agree with the interpreter. The last way's
// outcome.
inline Outcome check_graph(const std::string& text, Tolerance tolerance = {},
                           const std::vector<Way>& ways = usual_ways(),
                           backend::cpu::Compiler& compiler = backend::cpu::default_compiler(),
                           Symbols symbols = {}) {
  ops::intern_schemas();
  graph::Graph graph = graph::parse(text);
  loop::Program program = loop::lower(graph);
  loop::verify(program);
  std::mt19937 generator(1);
  std::vector<Array> inputs;
  for (graph::ValueId id : graph.inputs) inputs.push_back(random_array(graph.meta(id), generator, symbols));
  loop::InterpreterOptions interpreter;
  interpreter.symbol = [&](int64_t id) {
    auto found = symbols.find(id);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  };
  loop::InterpreterResult expected = loop::interpret(program, inputs, {}, interpreter);
  Outcome outcome;
  for (const Way& way : ways) {
    CAPTURE(way.fuse);
    CAPTURE(way.threads);
    CAPTURE(way.target.vector_bytes);
    outcome = {};
    CAPTURE(way.all_arguments);
    backend::ScheduleOptions options{.parallelism = way.threads,
                                     .fuse = way.fuse,
                                     .all_arguments = way.all_arguments,
                                     .log = &outcome.log};
    plan::Plan plan = scheduled(program, way.target, options);
    plan::verify(plan);
    if (way.fuse && std::getenv("OXYFUEL_SHOW")) {
      fmt::print("{}\n", outcome.log);
      for (const plan::Kernel& kernel : plan.kernels) fmt::print("{}\n", kernel.source);
    }
    PlanRunner runner(plan, compiler.compile(plan.kernels), symbols);
    for (size_t k = 0; k < inputs.size(); ++k) runner.set_input(inputs[k], static_cast<int32_t>(k));
    CHECK(runner.run(way.threads == 1 ? 1 : 3) == 0);
    for (size_t k = 0; k < expected.outputs.size(); ++k)
      compare(runner.output(k), expected.outputs[k], tolerance, fmt::format("output {}", k));
    for (size_t k = 0; k < expected.mutations.size(); ++k)
      compare(runner.mutation(k), expected.mutations[k], tolerance, fmt::format("mutation {}", k));
    outcome.plan = std::move(plan);
  }
  return outcome;
}

inline size_t launches(const Outcome& outcome) {
  return outcome.plan.steps.size();
}

}  // namespace oxy::testing
