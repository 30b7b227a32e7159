// Where the buffers of a plan live.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.h"
#include "sym/expr.h"

namespace oxy::backend {

using sym::Expr;

// A block of memory that is in use from step `first` to step `last`, both included.
struct Interval {
  Expr bytes;
  int32_t first = 0;
  int32_t last = 0;
};

struct Block {
  Interval interval;
  bool may_be_temporary = false;  // it can be allocated when it is needed, and freed afterwards
};

struct MemoryPlan {
  std::vector<std::optional<Expr>>
      offsets;  // in the arena: bytes, 64-byte aligned, by block; none: temporary
  Expr arena_bytes = 0;
  std::vector<plan::Definition> definitions;  // of what the offsets name
};

// The arena costs a call nothing, but it is held as a whole while only part of it is needed: where that would
// raise the most memory that the plan's `steps` ever hold, with the `others` that are no blocks of the arena,
// large blocks become temporaries.
//
// Blocks that overlap in time get disjoint places: the largest first, each in the tightest gap. Symbolic
// sizes are taken for what they are estimated at (sym/hints.h). For other sizes, blocks that overlap in time
// keep their order in the arena, and each begins where those below it end.
MemoryPlan plan_memory(const std::vector<Block>& blocks, const std::vector<Interval>& others, int32_t steps);

}  // namespace oxy::backend
