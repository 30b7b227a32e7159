// Performs the steps of a prepared plan on a frame, one after the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "runtime/execution/frame.h"
#include "runtime/execution/prepared_plan.h"

namespace oxy::runtime {

// Steps [begin, end) of a plan.
struct StepSpan {
  size_t begin = 0;
  size_t end = 0;
};

// `owned`: the inputs, if they may be dropped on the way; else null.
void run_steps(const PreparedPlan& plan, StepSpan span, Frame& frame, std::vector<at::Tensor>* owned);

void run_launch(const PreparedLaunch& launch, Frame& frame);
void run_call(const PreparedCall& call, Frame& frame);
void run_release(const PreparedRelease& release, Frame& frame, std::vector<at::Tensor>* owned);

}  // namespace oxy::runtime
