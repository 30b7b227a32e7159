// Which ways to divide reductions are tried with mode="max-autotune", and that the fastest is taken.
#include <doctest/doctest.h>

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "backend/shared/schedule.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"

using namespace oxy;
using namespace oxy::backend::cuda;

namespace {

// A way of each trial: that of the name, or else the chosen one.
plan::Plan tuned_plan(const std::string& text, const std::string& name, std::vector<WaysTrial>& asked) {
  ops::intern_schemas();
  const auto first_shapes = [](std::span<const Trial> trials) { return std::vector<size_t>(trials.size()); };
  const auto named_ways = [&](std::span<const WaysTrial> trials) {
    asked.assign(trials.begin(), trials.end());
    std::vector<size_t> chosen;
    for (const WaysTrial& trial : trials) {
      const auto found = std::ranges::find(trial.ways, name, &WaysTrial::Way::name);
      chosen.push_back(found == trial.ways.end() ? 0 : static_cast<size_t>(found - trial.ways.begin()));
    }
    return chosen;
  };
  const auto backend = make_printer(Choosers{first_shapes, named_ways});
  loop::Program program = loop::lower(graph::parse(text), backend->lowering_options());
  return backend::schedule(std::move(program), *backend, {.parallelism = 132, .tune = true});
}

constexpr const char* kSums = R"(graph(%0 : float32[65536, 64], %1 : float32[1000, 1000]) {
  %2 : float32[64] = aten::sum.dim_IntList(%0, [0], False)
  %3 : float32[1000, 1000] = aten::relu(%1)
  return %2, %3
}
)";

}  // namespace

TEST_CASE("tuned splits: only what differs is timed") {
  std::vector<WaysTrial> asked;
  tuned_plan(kSums, "", asked);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].subject == "64 sums of 65536 elements");
  CHECK(asked[0].ways.size() > 3);
  for (const WaysTrial::Way& way : asked[0].ways) {
    CAPTURE(way.name);
    CHECK(way.launches.size() == (way.name == "as a whole" ? 1 : 2));  // relu's kernel is that of all ways
    for (const Launches& launches : way.launches) {
      CHECK(launches.count == 1);
      CHECK(launches.kernel.candidates.size() == 1);
    }
  }
}

TEST_CASE("tuned splits: the plan is that of the fastest way") {
  std::vector<WaysTrial> asked;
  CHECK(tuned_plan(kSums, "", asked).steps.size() == 3);
  CHECK(tuned_plan(kSums, "as a whole", asked).steps.size() == 2);
  const std::string other = asked[0].ways.back().name;
  const plan::Plan plan = tuned_plan(kSums, other, asked);
  CHECK(plan.steps.size() == 3);
  for (const Launches& launches : asked[0].ways.back().launches)
    CHECK(std::ranges::find(plan.kernels, launches.kernel.candidates[0].text.name, &plan::Kernel::name) !=
          plan.kernels.end());
}

TEST_CASE("tuned splits: rows that add up columns on their way, or leave that to others") {
  const std::string text = R"(graph(%0 : float32[8192, 512], %1 : float32[8192, 512]) {
  %2 : float32[8192, 512] = aten::mul.Tensor(%0, %1)
  %3 : float32[8192, 1] = aten::sum.dim_IntList(%2, [1], True)
  %4 : float32[8192, 512] = aten::sub.Tensor(%0, %3)
  %5 : float32[512] = aten::sum.dim_IntList(%2, [0], False)
  return %4, %5
}
)";
  std::vector<WaysTrial> asked;
  CHECK(tuned_plan(text, "", asked).steps.size() == 2);
  const auto rows = std::ranges::find(asked, "512 sums over 8192 rows that are reduced", &WaysTrial::subject);
  REQUIRE(rows != asked.end());
  CHECK(rows->ways.size() == 4);
  CHECK(tuned_plan(text, "apart from the rows", asked).steps.size() == 3);
}
