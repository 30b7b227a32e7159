// Caches that get a row more, on a device whose kernels report no index: written in place, without a copy.
#include <doctest/doctest.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/graph_checks.h"

using namespace oxy;

namespace {

plan::Plan scheduled(const std::string& text) {
  plan::Plan plan =
      backend::schedule(oxy::testing::lowered(text), *backend::cuda::make_backend(), {.parallelism = 132});
  plan::verify(plan);
  return plan;
}

size_t launches(const plan::Plan& plan) {
  size_t count = 0;
  for (const plan::Step& step : plan.steps) count += std::holds_alternative<plan::Launch>(step) ? 1 : 0;
  return count;
}

// Whether the input with this number is written where it lies.
bool is_written_in_place(const plan::Plan& plan, int32_t input) {
  for (const plan::Mutation& mutation : plan.mutations)
    if (mutation.input == input) {
      const plan::Buffer& buffer = plan.buffers[mutation.value.buffer];
      return buffer.storage == plan::Storage::Input && buffer.slot == input;
    }
  return false;
}

constexpr const char* kHead = R"(
    graph(%0 : bfloat16[1, 2, 64, 8]{device=cuda:0}, %1 : int64[1]{device=cuda:0}, %2 : bfloat16[1, 2, 1, 8]{device=cuda:0}) {
      )";

}  // namespace

TEST_CASE("scattered inputs: a cache is written in place, and read from there") {
  const plan::Plan plan = scheduled(std::string(kHead) + R"(
      %3 : bfloat16[1, 2, 1, 8]{device=cuda:0} = aten::sin(%2)
      %4 : bfloat16[1, 2, 64, 8]{device=cuda:0} = aten::index_copy(%0, 2, %1, %3)
      %5 : bfloat16[1, 2, 64, 8]{device=cuda:0} = aten::mul.Tensor(%4, 2)
      mutate input 0 = %4
      return %5
    })");
  CHECK(launches(plan) == 2);
  CHECK(is_written_in_place(plan, 0));
}

TEST_CASE("scattered inputs: an operator of the library reads it as well") {
  const plan::Plan plan = scheduled(std::string(kHead) + R"(
      %3 : bfloat16[1, 2, 64, 8]{device=cuda:0} = aten::index_copy(%0, 2, %1, %2)
      %4 : bfloat16[1, 2, 64, 8]{device=cuda:0}, %5 : int64[1, 2, 64, 8]{device=cuda:0} = aten::sort(%3, 2, False)
      mutate input 0 = %3
      return %4
    })");
  CHECK(launches(plan) == 1);
  CHECK(is_written_in_place(plan, 0));
}

TEST_CASE(
    "scattered inputs: copies stay where the old contents are read, or the new ones are a result or not "
    "all") {
  for (const char* body : {R"(
      %3 : bfloat16[1, 2, 64, 8]{device=cuda:0} = aten::sin(%0)
      %4 : bfloat16[1, 2, 64, 8]{device=cuda:0} = aten::index_copy(%0, 2, %1, %2)
      %5 : bfloat16[1, 2, 64, 8]{device=cuda:0} = aten::add.Tensor(%4, %3, alpha=1)
      mutate input 0 = %4
      return %5
    })",
                           R"(
      %3 : bfloat16[1, 2, 64, 8]{device=cuda:0} = aten::index_copy(%0, 2, %1, %2)
      mutate input 0 = %3
      return %3
    })"}) {
    const plan::Plan plan = scheduled(std::string(kHead) + body);
    CHECK(!is_written_in_place(plan, 0));
  }
}
