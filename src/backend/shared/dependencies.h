// Which steps of a program must run before which others.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/shared/normal_form.h"

namespace oxy::backend {

struct BufferUse {
  std::vector<int32_t> writers;  // steps, in order
  std::vector<int32_t> readers;
  bool is_kept = false;       // an output or a mutation reads it after the last step
  bool is_irregular = false;  // several writers, or stores at computed positions: never fused across
};

struct Dependencies {
  std::vector<std::vector<int32_t>> before;  // by step: those that it needs, ascending, distinct
  std::vector<std::vector<int32_t>> after;   // the inverse
  std::vector<BufferUse> buffers;
};

Dependencies find_dependencies(const loop::Program& program, const std::vector<Item>& items);

// Calls fn(view) for every buffer that the call reads.
void for_each_view(const loop::ExternCall& call, const std::function<void(const loop::BufferView&)>& fn);

}  // namespace oxy::backend
