#include "backend/shared/memory.h"

#include <algorithm>
#include <limits>

namespace oxy::backend {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kSmallestTemporary = int64_t{64} << 10;  // bytes that are worth an allocation
constexpr int64_t kTolerance = 256;               // an arena may add 1 / kTolerance of the least peak to it,
constexpr int64_t kMostAdded = int64_t{4} << 20;  // and so many bytes
constexpr int64_t kLimits = 16;                   // sizes of the arena that are tried

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Placed {
  int64_t offset;
  int64_t bytes;
  int32_t first;
  int32_t last;
};

// The tightest gap between blocks that overlap [first, last], else the end of them.
int64_t find_place(const std::vector<Placed>& by_offset, int64_t bytes, int32_t first, int32_t last) {
  int64_t end = 0;
  int64_t best = -1;
  int64_t best_gap = 0;
  for (const Placed& p : by_offset) {
    if (p.last < first || last < p.first) continue;
    int64_t gap = p.offset - end;
    if (gap >= bytes && (best < 0 || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, p.offset + p.bytes);
  }
  return best >= 0 ? best : end;
}

// Bytes in use, step by step.
class Usage {
 public:
  explicit Usage(int32_t steps) : change_(static_cast<size_t>(steps) + 1) {}

  void add(const Interval& interval) {
    if (!interval.bytes.is_constant() || interval.last < interval.first) return;
    const auto steps = static_cast<int32_t>(change_.size()) - 1;
    change_[static_cast<size_t>(std::clamp(interval.first, 0, steps))] += interval.bytes.constant();
    if (interval.last < steps) change_[static_cast<size_t>(interval.last) + 1] -= interval.bytes.constant();
  }

  int64_t peak() const {
    int64_t now = 0, most = 0;
    for (const int64_t change : change_) most = std::max(most, now += change);
    return most;
  }

 private:
  std::vector<int64_t> change_;
};

bool may_leave(const Block& block) {
  return block.may_be_temporary && block.interval.bytes.is_constant() &&
         block.interval.bytes.constant() >= kSmallestTemporary;
}

// An arena in which no block that may be a temporary ends beyond `limit`.
MemoryPlan plan_arena(const std::vector<Block>& blocks, int64_t limit) {
  MemoryPlan plan;
  plan.offsets.resize(blocks.size());
  std::vector<size_t> constants;
  std::vector<size_t> symbolic;
  for (size_t k = 0; k < blocks.size(); ++k)
    (blocks[k].interval.bytes.is_constant() ? constants : symbolic).push_back(k);

  std::ranges::stable_sort(constants, [&](size_t a, size_t b) {
    return blocks[a].interval.bytes.constant() > blocks[b].interval.bytes.constant();
  });
  std::vector<Placed> placed;
  int64_t total = 0;
  for (size_t k : constants) {
    const Interval& interval = blocks[k].interval;
    const int64_t bytes = aligned(interval.bytes.constant());
    const int64_t offset = find_place(placed, bytes, interval.first, interval.last);
    if (offset + bytes > limit && may_leave(blocks[k])) continue;
    const Placed block{offset, bytes, interval.first, interval.last};
    placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Placed::offset), block);
    plan.offsets[k] = offset;
    total = std::max(total, offset + bytes);
  }
  plan.arena_bytes = total;

  std::ranges::stable_sort(symbolic, {}, [&](size_t k) { return blocks[k].interval.first; });
  struct Slot {
    Expr bytes;
    Expr offset;
    int32_t last;
  };
  std::vector<Slot> slots;
  for (size_t k : symbolic) {
    const Interval& i = blocks[k].interval;
    auto free =
        std::ranges::find_if(slots, [&](const Slot& s) { return s.last < i.first && s.bytes == i.bytes; });
    if (free == slots.end()) {
      slots.push_back({i.bytes, plan.arena_bytes, i.last});
      plan.arena_bytes = plan.arena_bytes + kAlignment * sym::ceildiv(i.bytes, kAlignment);
      free = slots.end() - 1;
    }
    free->last = i.last;
    plan.offsets[k] = free->offset;
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Block>& blocks, const std::vector<Interval>& others, int32_t steps) {
  MemoryPlan best = plan_arena(blocks, std::numeric_limits<int64_t>::max());
  if (!best.arena_bytes.is_constant() || std::ranges::none_of(blocks, may_leave)) return best;
  Usage outside(steps);
  for (const Interval& interval : others) outside.add(interval);
  Usage everything = outside;
  for (const Block& block : blocks) everything.add(block.interval);
  const int64_t least = everything.peak();
  const auto peak_of = [&](const MemoryPlan& plan) {
    Usage usage = outside;
    for (size_t k = 0; k < blocks.size(); ++k)
      if (!plan.offsets[k]) usage.add(blocks[k].interval);
    return plan.arena_bytes.constant() + usage.peak();
  };
  const int64_t whole = best.arena_bytes.constant();
  const int64_t good = least + std::min(least / kTolerance, kMostAdded);
  int64_t best_peak = peak_of(best);
  for (int64_t n = kLimits - 1; n >= 0 && best_peak > good; --n) {
    MemoryPlan plan = plan_arena(blocks, whole / kLimits * n);
    const int64_t peak = peak_of(plan);
    if (peak < best_peak) best = std::move(plan), best_peak = peak;
  }
  return best;
}

}  // namespace oxy::backend
