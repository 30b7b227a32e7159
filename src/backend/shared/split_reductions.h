// Splits long reductions to few results, so that more of them runs at once: partial results first, then these
// combined.
#pragma once

#include "backend/backend.h"

namespace oxy::backend {

// Rewrites such computations of the program as two steps. The split depends on the sizes alone, so that
// results do not depend on how much runs at once.
void split_long_reductions(loop::Program& program, const SplitCosts& costs);

}  // namespace oxy::backend
