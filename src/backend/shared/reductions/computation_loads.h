// What a computation loads, and how often.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "loop/program.h"

namespace oxy::backend {

// Iterations of all the loops as one; nothing if an extent is a symbol.
inline std::optional<int64_t> iterations(const std::vector<loop::LoopVariable>& loops) {
  int64_t count = 1;
  for (const loop::LoopVariable& l : loops) {
    const auto extent = l.extent.as_constant();
    if (!extent) return std::nullopt;
    count *= *extent;
  }
  return count;
}

// Calls fn(buffer, index) for each load of the body.
template <class Fn>
void for_each_load(const loop::Computation& c, Fn fn) {
  for (const loop::Inst& inst : c.body.insts)
    if (inst.op == loop::Op::Load) fn(inst.buffer, c.body.indices[inst.index]);
}

}  // namespace oxy::backend
