// Operators by which PyTorch names one library's way to compute something, recorded as the operator that
// names what is computed: shape rules, decompositions and passes know that one alone.
#pragma once

#include <torch/library.h>

namespace oxy::trace {

// Makes them kernels of the dispatch key of trace tensors in `library`.
void add_library_operators(torch::Library& library);

}  // namespace oxy::trace
