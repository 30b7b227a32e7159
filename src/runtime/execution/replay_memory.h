// Memory of recorded work that is the same at each replay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/execution/prepared_plan.h"

namespace oxy::runtime {

// Recorded work holds its memory for ever, the arena and what else it writes to on the way. So temporaries,
// for which a call without graphs allocates memory as it goes, have places behind the plan's own arena: then
// all graphs of a stream use the same memory.
struct ReplayMemory {
  std::vector<std::optional<int64_t>> places;  // by buffer: of temporaries, bytes from the arena's first
  int64_t arena_bytes = 0;
};

ReplayMemory replay_memory(const PreparedPlan& plan);

}  // namespace oxy::runtime
