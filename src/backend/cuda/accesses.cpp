#include "backend/cuda/accesses.h"

#include <algorithm>

#include "backend/cuda/launch_shape.h"

namespace oxy::backend::cuda {

using loop::Op;

Expr extent_of(const std::vector<LoopVariable>& loops) {
  Expr extent = 1;
  for (const LoopVariable& l : loops) extent = extent * l.extent;
  return extent;
}

int warps_for(int64_t elements, int64_t most) {
  const int64_t warps = elements / (kThreadsAWarp * kElementsAThread);
  return static_cast<int>(power_of_two(std::clamp<int64_t>(warps, 1, most)));
}

bool is_unit(const Expr& offset, const LoopVariable& l) {
  const auto stride = stride_of(offset, l.variable);
  return stride && *stride == Expr(1);
}

bool is_unmoved(const Expr& offset, const LoopVariable& l) {
  const auto stride = stride_of(offset, l.variable);
  return stride && *stride == Expr(0);
}

int64_t smallest_element(const LoopNest& nest) {
  int64_t least = 8;
  for (const Phase& phase : nest.phases)
    for_each_access(nest, phase, [&](const Access& access) { least = std::min(least, access.bytes); });
  return least;
}

int64_t moved_bytes(const LoopNest& nest) {
  int64_t moved = 0, chosen = 0;
  const auto bytes_of = [&](ArrayId id, const Expr& offset) -> int64_t {
    const auto is_broadcast = [&](const LoopVariable& l) { return is_unmoved(offset, l); };
    const bool is_memory = nest.arrays[id].kind == ArrayKind::Parameter;
    return is_memory && std::ranges::none_of(nest.outer, is_broadcast) ? bytes(nest.arrays[id].dtype) : 0;
  };
  for (const Phase& phase : nest.phases) {
    for (const NestInst& inst : phase.insts) {
      if (inst.op != Op::Load) continue;
      const int64_t loaded = bytes_of(inst.buffer, phase.expressions[inst.index]);
      if (inst.operands[0] == loop::kNoInst)
        moved += loaded;
      else
        chosen = std::max(chosen, loaded);
    }
    for (const ElementStore& store : phase.stores) moved += bytes_of(store.array, store.offset);
  }
  return std::max<int64_t>(moved + chosen, 1);
}

int operand_count(const LoopNest& nest) {
  int count = 0;
  for (const Phase& phase : nest.phases) for_each_access(nest, phase, [&](const Access&) { ++count; });
  return count;
}

int moved_count(const LoopNest& nest) {
  int count = 0;
  for (const Phase& phase : nest.phases)
    for_each_access(nest, phase, [&](const Access& access) {
      const auto is_broadcast = [&](const LoopVariable& l) { return is_unmoved(access.offset, l); };
      count += std::ranges::none_of(nest.outer, is_broadcast);
    });
  return count;
}

int64_t load_count(const LoopNest& nest) {
  int64_t count = 0;
  for (const Phase& phase : nest.phases)
    count += std::ranges::count_if(phase.insts, [&](const NestInst& inst) {
      return inst.op == Op::Load && nest.arrays[inst.buffer].kind == ArrayKind::Parameter;
    });
  return count;
}

}  // namespace oxy::backend::cuda
