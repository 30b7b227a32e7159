#include "runtime/execution/plan_numbers.h"

#include <algorithm>
#include <vector>

#include "runtime/extern/general.h"

namespace oxy::runtime {

namespace {

constexpr int64_t kMostSlabBytes = int64_t{256} << 10;  // of an output that shares a block

bool has_work(const PreparedLaunch& launch) {
  if (const auto* slices = std::get_if<PreparedSlices>(&launch.shape)) return slices->extent > 0;
  return std::ranges::all_of(std::get<PreparedGrid>(launch.shape).size,
                             [](int64_t programs) { return programs > 0; });
}

}  // namespace

Invoke choose_way(const DeviceRuntime& runtime, SizedCall& call) {
  if (Invoke way = runtime.prepare_call(call.site)) return way;
  if (!call.general || call.has_numbers) call.general = prepare_general(call.site);
  return call.general;
}

void derive(PreparedPlan& plan) {
  plan.scratch_bytes = 0;
  for (PreparedStep& step : plan.steps) {
    auto* const launch = std::get_if<PreparedLaunch>(&step);
    if (launch == nullptr) continue;
    launch->has_work = has_work(*launch);
    if (auto* const slices = std::get_if<PreparedSlices>(&launch->shape)) {
      slices->scratch_bytes = (slices->scratch_bytes + 63) / 64 * 64;
      plan.scratch_bytes = std::max(plan.scratch_bytes, slices->scratch_bytes);
    }
  }
  std::vector<int64_t> left(plan.devices.size());  // by device
  for (size_t n = plan.steps.size(); n-- > 0;) {
    auto* const allocation = std::get_if<PreparedAllocation>(&plan.steps[n]);
    if (allocation == nullptr || !allocation->stays_inside) continue;
    const int64_t bytes = bytes_of(plan.buffers[allocation->buffer.index()].whole_spec);
    const bool shares = bytes > 0 && bytes < kMostSlabBytes;
    int64_t& of_device = left[plan.places[allocation->buffer.index()]];
    if (shares) of_device += (bytes + 63) / 64 * 64;
    allocation->slab_bytes = shares ? of_device : 0;
  }
}

void write(PlanNumbers& numbers, SymbolicPlan& symbolic, PreparedPlan& plan) {
  for (const NumberPlace& place : numbers.places) *place.target = symbolic.value(place.expression);
  derive(plan);
  if (!numbers.calls.empty()) symbolic.with_numbers();  // which the sites of calls read
  for (SizedCall& call : numbers.calls)
    std::get<PreparedCall>(plan.steps[call.step]).invoke = choose_way(*plan.runtime, call);
}

}  // namespace oxy::runtime
