// Which steps of a program must run before which others.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/shared/normal_form.h"

namespace oxy::backend {

struct BufferUse {
  std::vector<StepId> writers;  // in order
  std::vector<StepId> readers;
  bool is_kept = false;       // an output or a mutation reads it after the last step
  bool is_irregular = false;  // several writers, or stores at computed positions: no reader joins a writer
};

struct Dependencies {
  IdVector<StepId, std::vector<StepId>> before;  // those that it needs, ascending, distinct
  IdVector<StepId, std::vector<StepId>> after;   // the inverse
  IdVector<BufferId, BufferUse> buffers;
};

Dependencies find_dependencies(const loop::Program& program, const IdVector<StepId, Item>& items);

// Calls fn(view) for every buffer that the call reads.
void for_each_view(const loop::ExternCall& call, const std::function<void(const loop::BufferView&)>& fn);

}  // namespace oxy::backend
