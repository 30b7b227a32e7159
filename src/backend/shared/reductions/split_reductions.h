// Splits long reductions to few results, so that more of them runs at once: partial results first, then these
// combined.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/shared/reductions/splits.h"

namespace oxy::backend {

// Makes `c`, a computation of the program that is not yet among the steps before it, write parts of its
// results to new buffers, and returns the computations that combine them, in order; none, and `c` as it was,
// if that is not worth it. Whether rows or columns are reduced depends on the layouts of
// what `c` reads: those have to be known. Unless `splits` has a tuned number of parts, sizes and layouts
// alone decide, so that results do not depend on how much runs at once. What was decided is noted there.
std::vector<loop::Computation> split_long_reduction(loop::Program& program, loop::Computation& c,
                                                    const SplitCosts& costs, Splits& splits);

}  // namespace oxy::backend
