#include "runtime/execution/steps.h"

#include <optional>

#include "runtime/device/draw_lock.h"

namespace oxy::runtime {

void run_launch(const PreparedLaunch& launch, Frame& frame) {
  if (launch.has_work) frame.launch(launch);
}

void run_call(const PreparedCall& call, Frame& frame) {
  {
    std::optional<DrawsBesideOthers> draws;
    if (call.draws == Draws::OnDevice) draws.emplace();
    call.invoke(frame.tensors());
  }
  for (const plan::BufferId id : call.returned) frame.adopt(id);
}

void run_release(const PreparedRelease& release, Frame& frame, std::vector<at::Tensor>* owned) {
  if (owned == nullptr) return;
  frame.drop(release.buffer);
  (*owned)[static_cast<size_t>(release.input)].reset();
}

void run_steps(const PreparedPlan& plan, StepSpan span, Frame& frame, std::vector<at::Tensor>* owned) {
  for (size_t i = span.begin; i < span.end; ++i) {
    const PreparedStep& step = plan.steps[i];
    if (const auto* kernel = std::get_if<PreparedLaunch>(&step))
      run_launch(*kernel, frame);
    else if (const auto* call = std::get_if<PreparedCall>(&step))
      run_call(*call, frame);
    else if (const auto* allocation = std::get_if<PreparedAllocation>(&step))
      frame.allocate(*allocation);
    else if (const auto* release = std::get_if<PreparedRelease>(&step))
      run_release(*release, frame, owned);
    else
      frame.drop(std::get<PreparedFree>(step).buffer);
  }
}

}  // namespace oxy::runtime
