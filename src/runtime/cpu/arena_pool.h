// The CPU's memory for the arenas of all plans: the forward and the backward pass of a step, or the models of
// a process, seldom run at once and then use the same bytes.
#pragma once

#include "runtime/device/arena.h"

namespace oxy::runtime {

// The one pool of the process. It is never destroyed: threads may run plans while the process ends.
ArenaSource& arena_pool();

}  // namespace oxy::runtime
