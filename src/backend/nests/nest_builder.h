// A fused group as one loop nest.
#pragma once

#include <cstdint>
#include <functional>

#include "backend/nests/loop_nest.h"
#include "backend/shared/fusion.h"

namespace oxy::backend {

struct NestOptions {
  int64_t l1_bytes = 32 * 1024;
  int64_t l2_bytes = 1024 * 1024;
  int lanes = 16;
  bool whole_reductions = false;  // a mean and its variance, a maximum and its sum, stay one reduction
};

// `is_needed(buffer)`: somebody outside the group reads it. Arrays of kind Parameter name their buffer; the
// others have vanished from memory. The nest is finished (backend::finish).
backend::LoopNest build_nest(const loop::Program& program, const IdVector<StepId, Item>& items,
                             const Group& group, const std::function<bool(BufferId)>& is_needed,
                             const NestOptions& options);

}  // namespace oxy::backend
