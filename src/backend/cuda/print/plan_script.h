// A plan as a Python program that runs alone, with torch and triton: for dumps, for tests under Triton's
// interpreter, and for measuring kernels where nothing of this package is installed.
#pragma once

#include <string>

#include "plan/plan.h"

namespace oxy::backend::cuda {

// The plan's kernels, and `run(inputs, constants)`: inputs are tensors with the strides that the plan was
// made for, constants a dict by handle. It gives the list of outputs and writes the inputs that the plan
// writes. Unsupported if the plan calls an operator with an argument that has no text.
std::string plan_script(const plan::Plan& plan);

}  // namespace oxy::backend::cuda
