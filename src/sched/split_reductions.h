// Gives long reductions to few results more threads: partial results first, then these combined.
#pragma once

#include "loop/program.h"

namespace oxy::sched {

// Rewrites such computations of the program as two steps. The split depends on the sizes alone, so that
// results do not depend on the number of threads.
void split_long_reductions(loop::Program& program);

}  // namespace oxy::sched
