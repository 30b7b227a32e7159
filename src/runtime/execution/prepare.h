// From a plan to the form that a call walks through.
#pragma once

#include <memory>

#include "runtime/execution/plan_numbers.h"
#include "runtime/execution/prepared_plan.h"
#include "runtime/execution/specialise.h"

namespace oxy::runtime {

struct Preparation {
  std::unique_ptr<PreparedPlan> plan;  // its calls hold addresses within it
  PlanNumbers numbers;                 // of `plan`, out of the one that was prepared
};

// For the sizes that `symbolic` evaluated last; its plan must be verified. Outputs from `visible_outputs` on
// stay inside the library: small ones share blocks of memory. Unsupported for buffers on devices of several
// kinds and on devices that no plan runs on; UserError for operators that this torch lacks.
Preparation prepare(SymbolicPlan& symbolic, const backend::KernelLibrary* kernels, size_t constant_count,
                    size_t visible_outputs);

}  // namespace oxy::runtime
