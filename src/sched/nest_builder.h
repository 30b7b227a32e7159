// A fused group as one loop nest.
#pragma once

#include <functional>

#include "codegen/loop_nest.h"
#include "sched/fusion.h"

namespace oxy::sched {

struct NestOptions {
  int64_t l1_bytes = 32 * 1024;
  int64_t l2_bytes = 1024 * 1024;
  int lanes = 16;
};

// `is_needed(buffer)`: somebody outside the group reads it. Arrays of kind Parameter name their buffer; the
// others have vanished from memory. The nest is finished (codegen::finish).
codegen::LoopNest build_nest(const loop::Program& program, const std::vector<Item>& items, const Group& group,
                             const std::function<bool(BufferId)>& is_needed, const NestOptions& options);

// e with the variables of the first `depth` loops at 0, and with those of the others at 0.
Expr without_outer(const Expr& e, size_t depth);
Expr without_inner(const Expr& e, size_t depth);

}  // namespace oxy::sched
