// Scans on a GPU: what becomes one kernel with them, and what does not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/shared/schedule.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"

using namespace oxy;

namespace {

struct Steps {
  size_t launches = 0;
  size_t calls = 0;
  friend bool operator==(const Steps&, const Steps&) = default;
};

Steps steps_of(const std::string& body) {
  ops::intern_schemas();
  const auto backend = backend::cuda::make_backend();
  loop::Program program = loop::lower(graph::parse(body), backend->lowering_options());
  loop::verify(program);
  const plan::Plan plan = backend::schedule(std::move(program), *backend, {.parallelism = 132});
  plan::verify(plan);
  Steps steps;
  for (const plan::Step& step : plan.steps) {
    steps.launches += std::holds_alternative<plan::Launch>(step);
    steps.calls += std::holds_alternative<plan::Call>(step);
  }
  return steps;
}

constexpr Steps kOneKernel{.launches = 1};

}  // namespace

TEST_CASE("scans: what they read and who reads them are one kernel") {
  for (const int dim : {0, 1, 2}) {
    CAPTURE(dim);
    CHECK(steps_of(fmt::format(R"(graph(%0: bfloat16[64, 96, 80], %1: float32[80]) {{
  %2: float32[64, 96, 80] = aten::_to_copy(%0, dtype=float32)
  %3: float32[64, 96, 80] = aten::cumsum(%2, {})
  %4: float32[64, 96, 80] = aten::mul.Tensor(%3, %1)
  %5: bfloat16[64, 96, 80] = aten::_to_copy(%4, dtype=bfloat16)
  return %3, %5
}})",
                               dim)) == kOneKernel);
  }
}

TEST_CASE("scans: the gradient of a cumulative sum is one kernel") {
  for (const int dim : {0, 1}) {
    CAPTURE(dim);
    CHECK(steps_of(fmt::format(R"(graph(%0: float32[512, 768]) {{
  %1: float32[512, 768] = aten::flip(%0, [{0}])
  %2: float32[512, 768] = aten::cumsum(%1, {0})
  %3: float32[512, 768] = aten::flip(%2, [{0}])
  return %3
}})",
                               dim)) == kOneKernel);
  }
}

TEST_CASE("scans: a chain that goes on from a scan of columns, or from a gradient, is one kernel") {
  for (const int dim : {0, 1}) {
    CAPTURE(dim);
    CHECK(steps_of(fmt::format(R"(graph(%0: float32[512, 768], %1: float32[512, 768]) {{
  %2: float32[512, 768] = aten::flip(%0, [{0}])
  %3: float32[512, 768] = aten::cumsum(%2, {0})
  %4: float32[512, 768] = aten::flip(%3, [{0}])
  %5: float32[512, 768] = aten::mul.Tensor(%4, %1)
  return %4, %5
}})",
                               dim)) == kOneKernel);
  }
}

TEST_CASE("scans: reductions of the same rows join them, and scans of scans") {
  CHECK(steps_of(R"(graph(%0: float32[512, 768]) {
  %1: float32[512, 768] = aten::cumsum(%0, 1)
  %2: float32[512, 768] = aten::cumprod(%1, 1)
  %3: float32[512, 1] = aten::amax(%2, [1], True)
  %4: float32[512, 768] = aten::sub.Tensor(%2, %3)
  return %4
})") == kOneKernel);
}

TEST_CASE("scans: what runs through other rows is a kernel of its own") {
  CHECK(steps_of(R"(graph(%0: float32[512, 512]) {
  %1: float32[512, 512] = aten::cumsum(%0, 1)
  %2: float32[512, 512] = aten::cumsum(%1, 0)
  return %2
})") == Steps{.launches = 2});
  // Elements that other threads have stored.
  CHECK(steps_of(R"(graph(%0: float32[512, 512]) {
  %1: float32[512, 512] = aten::cumsum(%0, 1)
  %2: float32[512, 1] = aten::slice.Tensor(%1, 1, 511, 512)
  %3: float32[512, 512] = aten::div.Tensor(%1, %2)
  return %3
})") == Steps{.launches = 2});
  // Rows that are written as columns.
  CHECK(steps_of(R"(graph(%0: float32[512, 768]) {
  %1: float32[512, 768] = aten::cumsum(%0, 1)
  %2: float32[768, 512]{strides=[1, 768]} = aten::permute(%1, [1, 0])
  %3: float32[768, 512] = aten::clone(%2, memory_format=contiguous)
  return %1, %3
})") == Steps{.launches = 2});
  CHECK(steps_of(R"(graph(%0: float32[1000000]) {
  %1: float32[1000000] = aten::cumsum(%0, 0)
  return %1
})") == Steps{.calls = 1});
}
