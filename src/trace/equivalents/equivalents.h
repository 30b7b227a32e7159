// Operators that are recorded as others, which shape rules, decompositions and passes know. Their kernels are
// those of the dispatch key of trace tensors.
#pragma once

#include <torch/library.h>

namespace oxy::trace {

// Operators by which PyTorch names one library's way to compute something, as the operator that names what is
// computed.
void add_library_operators(torch::Library& library);
// The operators of a GradScaler, as what they compute.
void add_gradient_scaling(torch::Library& library);

// Adds all of them.
inline void add_equivalents(torch::Library& library) {
  add_library_operators(library);
  add_gradient_scaling(library);
}

}  // namespace oxy::trace
