// Programs with tensors on several devices: kernels of one device each, an arena on one, copies by operators.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "backend/cuda/cuda_backend.h"
#include "backend/graph_checks.h"
#include "base/error.h"
#include "loop/devices.h"
#include "plan/step_buffers.h"

using namespace oxy;

namespace {

const Device kFirst{Device::Kind::Cuda, 0}, kSecond{Device::Kind::Cuda, 1};

plan::Plan scheduled(const std::string& text) {
  plan::Plan plan =
      backend::schedule(oxy::testing::lowered(text), *backend::cuda::make_backend(), {.parallelism = 4});
  plan::verify(plan);
  return plan;
}

// The devices of the launches, in order, and "call" for extern calls.
std::vector<std::string> places(const plan::Plan& plan) {
  std::vector<std::string> result;
  for (const plan::Step& step : plan.steps) {
    if (const auto* launch = std::get_if<plan::Launch>(&step)) {
      for (const plan::BufferId id : launch->buffers)
        CHECK(plan.buffers[id].device == plan.buffers[launch->buffers[0]].device);
      result.push_back(str(plan.buffers[launch->buffers[0]].device));
    } else if (std::holds_alternative<plan::Call>(step)) {
      result.emplace_back("call");
    }
  }
  return result;
}

bool holds_memory(const plan::Buffer& buffer) {
  return !(buffer.sizes.size() == 1 && buffer.sizes[0] == Expr(0));
}

}  // namespace

TEST_CASE("several devices: a model that goes from one to the other") {
  const plan::Plan plan = scheduled(R"(
    graph(%0 : float32[64, 128]{device=cuda:0}, %1 : float32[128]{device=cuda:0}, %2 : float32[128]{device=cuda:1}) {
      %3 : float32[64, 128]{device=cuda:0} = aten::mul.Tensor(%0, %1)
      %4 : float32[64, 128]{device=cuda:0} = aten::sin(%3)
      %5 : float32[64, 128]{device=cuda:1} = aten::_to_copy(%4, None, None, cuda:1)
      %6 : float32[64, 128]{device=cuda:1} = aten::mul.Tensor(%5, %2)
      %7 : float32[64, 128]{device=cuda:1} = aten::exp(%6)
      %8 : float32[64]{device=cuda:1} = aten::sum.dim_IntList(%7, [1], False)
      return %8
    })");
  CHECK(places(plan) == std::vector<std::string>{"cuda:0", "call", "cuda:1"});
}

TEST_CASE("several devices: computations that could be one kernel are not") {
  const std::string text = R"(
    graph(%0 : float32[8, 16]{device=D0}, %1 : float32[8, 16]{device=D1}) {
      %2 : float32[8, 16]{device=D0} = aten::sin(%0)
      %3 : float32[8, 16]{device=D1} = aten::sin(%1)
      return %2, %3
    })";
  const auto on = [&](const std::string& a, const std::string& b) {
    std::string result = text;
    for (const auto& [name, device] : {std::pair("D0", a), std::pair("D1", b)})
      for (size_t at; (at = result.find(name)) != std::string::npos;) result.replace(at, 2, device);
    return result;
  };
  CHECK(places(scheduled(on("cuda:0", "cuda:0"))) == std::vector<std::string>{"cuda:0"});
  const plan::Plan plan = scheduled(on("cuda:0", "cuda:1"));
  CHECK(places(plan) == std::vector<std::string>{"cuda:0", "cuda:1"});
  CHECK(plan.kernels.size() == 1);  // which both launch
}

TEST_CASE("several devices: the arena is on one, others have temporaries, and mutations outputs") {
  const plan::Plan plan = scheduled(R"(
    graph(%0 : float32[64, 128]{device=cuda:0}, %1 : float32[64, 128]{device=cuda:1}, %2 : float32[128, 128]{device=cuda:0}, %3 : float32[128, 128]{device=cuda:1}) {
      %4 : float32[64, 128]{device=cuda:0} = aten::sin(%0)
      %5 : float32[64, 128]{device=cuda:0} = aten::mm(%4, %2)
      %6 : float32[64, 128]{device=cuda:1} = aten::sin(%1)
      %7 : float32[64, 128]{device=cuda:1} = aten::mm(%6, %3)
      %8 : float32[64, 128]{device=cuda:1} = aten::cos(%7)
      %9 : float32[64, 128]{device=cuda:1} = aten::mm(%8, %3)
      mutate input 1 = %9
      return %5, %9
    })");
  std::set<std::string> temporaries;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (!holds_memory(buffer)) continue;
    if (buffer.storage == plan::Storage::Arena) CHECK(buffer.device == kFirst);
    if (buffer.storage == plan::Storage::Temporary) {
      CHECK(buffer.device == kSecond);
      temporaries.insert(buffer.name);
    }
  }
  CHECK(!temporaries.empty());
  // Each is freed once.
  std::multiset<std::string> freed;
  for (const plan::Step& step : plan.steps)
    if (const auto* free = std::get_if<plan::Free>(&step)) freed.insert(plan.buffers[free->buffer].name);
  for (const std::string& name : temporaries) CHECK(freed.count(name) == 1);
}

TEST_CASE("several devices: the steps of each give the right results") {
  // Kernels of the CPU stand in for those of the devices; the plan is the one for several.
  oxy::testing::check_graph(R"(
    graph(%0 : float32[7, 33]{device=cuda:0}, %1 : float32[7, 33]{device=cuda:1}, %2 : float32[33]{device=cuda:1}) {
      %3 : float32[7, 33]{device=cuda:0} = aten::exp(%0)
      %4 : float32[7]{device=cuda:0} = aten::sum.dim_IntList(%3, [1], False)
      %5 : float32[7, 33]{device=cuda:1} = aten::mul.Tensor(%1, %2)
      %6 : float32[7]{device=cuda:1} = aten::sum.dim_IntList(%5, [1], False)
      %7 : float32[7, 1]{device=cuda:1} = aten::unsqueeze(%6, 1)
      %8 : float32[7, 33]{device=cuda:1} = aten::sub.Tensor(%5, %7)
      %9 : float32[33]{device=cuda:1} = aten::sum.dim_IntList(%8, [0], False)
      %10 : float32[7, 33]{device=cuda:1} = aten::mul.Tensor(%8, %9)
      %11 : float32[7]{device=cuda:1} = aten::sum.dim_IntList(%10, [1], False)
      %12 : float32[33, 7]{device=cuda:0, strides=[1, 33]} = aten::permute(%3, [1, 0])
      %13 : float32[33, 7]{device=cuda:0, strides=[1, 33]} = aten::tanh(%12)
      mutate input 1 = %10
      return %4, %11, %13
    })");
}

TEST_CASE("several devices: an operator with tensors on two is left to PyTorch, which refuses it") {
  const plan::Plan plan = scheduled(R"(
    graph(%0 : float32[8]{device=cuda:0}, %1 : float32[8]{device=cuda:1}) {
      %2 : float32[8]{device=cuda:0} = aten::sin(%0)
      %3 : float32[8]{device=cuda:0} = aten::add.Tensor(%2, %1)
      return %3
    })");
  CHECK(places(plan) == std::vector<std::string>{"cuda:0", "call"});
}

TEST_CASE("several devices: the plan for a wrong arena or launch is refused") {
  plan::Plan plan = scheduled(R"(
    graph(%0 : float32[8, 8]{device=cuda:0}) {
      %1 : float32[8, 8]{device=cuda:0} = aten::sin(%0)
      %2 : float32[8, 8]{device=cuda:0} = aten::mm(%1, %1)
      return %2
    })");
  for (plan::Buffer& buffer : plan.buffers)
    if (buffer.storage == plan::Storage::Input) buffer.device = kSecond;
  CHECK_THROWS_AS(plan::verify(plan), InternalError);
}
