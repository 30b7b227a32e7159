#include <doctest/doctest.h>

#include "base/error.h"
#include "plan/plan.h"

using namespace oxy;
using namespace oxy::plan;

namespace {

constexpr BufferId kA(0), kB(1), kC(2);  // of small_plan()

// %a + %a -> arena -> extern copy -> output, with one kernel.
Plan small_plan() {
  const OperatorSchema* copy = intern_schema("testing::copy(Tensor self) -> Tensor");
  Plan plan;
  plan.input_count = 1;
  plan.arena_bytes = 64;
  plan.buffers = {{"a", DType::Float32, {}, {4}, {1}, Storage::Input, 0},
                  {"b", DType::Float32, {}, {4}, {1}, Storage::Arena, -1, 0},
                  {"c", DType::Float32, {}, {4}, {1}, Storage::Extern}};
  plan.kernels = {{"k", "source"}};
  plan.steps = {Launch{KernelId(0), {kA, kB}, {4}, Slices{4, 16, 0}},
                Call{copy, {View{kB, {4}, {1}, 0}}, {kC}}};
  plan.outputs = {{View{kC, {2}, {2}, 1}, DType::Float32, graph::OutputKind::Value, -1},
                  {View{kA, {4}, {1}, 0}, DType::Float32, graph::OutputKind::InputAlias, 0}};
  plan.mutations = {{0, View{kB, {4}, {1}, 0}}};
  return plan;
}

std::string fault(const Plan& plan) {
  try {
    verify(plan);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a plan prints one line a step") {
  CHECK(print(small_plan()) ==
        "plan of 1 inputs, arena of 64 bytes\n"
        "  %a: float32[4] input 0\n"
        "  %b: float32[4] arena at 0\n"
        "  %c: float32[4] extern\n"
        "  kernel 0: k (6 bytes of source)\n"
        "  launch k(%a, %b; [4]) extent 4 grain 16\n"
        "  %c = testing::copy(%b)\n"
        "  output 0: float32 %c{[2] strides [2] at 1} value\n"
        "  output 1: float32 %a alias of input 0\n"
        "  input 0 <- %b\n");
}

TEST_CASE("a sound plan passes the verifier") {
  CHECK(fault(small_plan()) == "");
}

TEST_CASE("the verifier names what is broken") {
  Plan plan = small_plan();
  plan.arena_bytes = 8;
  CHECK(contains(fault(plan), "past the end of the arena"));
  plan = small_plan();
  plan.buffers[kB].arena_offset = 4;
  CHECK(contains(fault(plan), "aligned"));
  plan = small_plan();
  plan.steps.erase(plan.steps.begin());
  CHECK(contains(fault(plan), "read before anything writes it"));
  plan = small_plan();
  plan.outputs[0].view.offset = 2;
  CHECK(contains(fault(plan), "reaches past buffer c"));
  plan = small_plan();
  std::get<Launch>(plan.steps[0]).kernel = KernelId(1);
  CHECK(contains(fault(plan), "no such kernel"));
  plan = small_plan();
  std::get<Call>(plan.steps[1]).args.clear();
  CHECK(contains(fault(plan), "has 1 arguments, not 0"));
  plan = small_plan();
  plan.steps.emplace_back(Free{kC});
  CHECK(contains(fault(plan), "read before"));
  plan = small_plan();
  plan.outputs[1].alias = 1;
  CHECK(contains(fault(plan), "does not exist"));
  plan = small_plan();
  plan.mutations[0].input = 3;
  CHECK(contains(fault(plan), "no such input"));
}
