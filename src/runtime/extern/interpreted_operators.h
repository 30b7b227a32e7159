// Operators of our own that generated kernels compute, for graphs that run operator by operator.
#pragma once

#include <torch/library.h>

namespace oxy::runtime {

// Defines them in the library "oxyfuel".
void add_interpreted_operators(torch::Library& library);

}  // namespace oxy::runtime
