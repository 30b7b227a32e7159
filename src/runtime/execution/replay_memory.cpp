#include "runtime/execution/replay_memory.h"

#include "backend/shared/memory.h"

namespace oxy::runtime {

namespace {

constexpr int64_t kAlignment = 512;  // as the allocator's

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

ReplayMemory replay_memory(const PreparedPlan& plan) {
  ReplayMemory memory{.places = {}, .arena_bytes = plan.arena_bytes};
  memory.places.resize(plan.buffers.size());
  const auto steps = static_cast<int32_t>(plan.steps.size());
  std::vector<backend::Block> blocks;
  std::vector<plan::BufferId> buffers;  // by block
  std::vector<std::optional<size_t>> block_of(plan.buffers.size());
  for (int32_t step = 0; step < steps; ++step) {
    const PreparedStep& prepared = plan.steps[static_cast<size_t>(step)];
    if (const auto* allocation = std::get_if<PreparedAllocation>(&prepared)) {
      const plan::BufferId id = allocation->buffer;
      if (plan.storages[id.index()] != plan::Storage::Temporary) continue;
      block_of[id.index()] = blocks.size();
      blocks.push_back({{aligned(bytes_of(plan.buffers[id.index()].whole_spec)), step, steps}, false});
      buffers.push_back(id);
    } else if (const auto* free = std::get_if<PreparedFree>(&prepared)) {
      if (const auto block = block_of[free->buffer.index()]) blocks[*block].interval.last = step;
    }
  }
  if (blocks.empty()) return memory;
  const backend::MemoryPlan packed = backend::plan_memory(blocks, {}, steps);
  const int64_t begin = aligned(plan.arena_bytes);
  for (size_t k = 0; k < blocks.size(); ++k)
    memory.places[buffers[k].index()] = begin + packed.offsets[k]->constant();
  memory.arena_bytes = begin + packed.arena_bytes.constant();
  return memory;
}

}  // namespace oxy::runtime
