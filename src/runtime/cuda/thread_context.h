// The driver's context of the thread that runs a plan.
#pragma once

#include "backend/cuda/load/driver.h"

namespace oxy::runtime {

// Makes the primary context of the thread's current device its current context, unless the thread has one. A
// thread of PyTorch, such as the one that runs backward passes, has none until an operator of PyTorch needs
// one. The driver launches nothing without. Throws InternalError if the driver refuses.
void ensure_context(const backend::cuda::Driver& driver);

}  // namespace oxy::runtime
