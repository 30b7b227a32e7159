#include "sched/memory.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace oxy::sched {

namespace {

constexpr int64_t kAlignment = 64;

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

}  // namespace

ArenaPlan plan_arena(const std::vector<Interval>& intervals) {
  ArenaPlan plan;
  plan.offsets.resize(intervals.size());
  std::vector<size_t> constants;
  std::vector<size_t> symbolic;
  for (size_t k = 0; k < intervals.size(); ++k)
    (intervals[k].bytes.is_constant() ? constants : symbolic).push_back(k);

  std::ranges::stable_sort(constants, [&](size_t a, size_t b) {
    return intervals[a].bytes.constant() > intervals[b].bytes.constant();
  });
  std::vector<Placed> placed;
  int64_t total = 0;
  for (size_t k : constants) {
    int64_t bytes = aligned(intervals[k].bytes.constant());
    int64_t offset = find_place(placed, bytes, intervals[k].first, intervals[k].last);
    Placed block{offset, bytes, intervals[k].first, intervals[k].last};
    placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Placed::offset), block);
    plan.offsets[k] = offset;
    total = std::max(total, offset + bytes);
  }
  plan.bytes = total;

  std::ranges::stable_sort(symbolic, {}, [&](size_t k) { return intervals[k].first; });
  struct Slot {
    Expr bytes;
    Expr offset;
    int32_t last;
  };
  std::vector<Slot> slots;
  for (size_t k : symbolic) {
    const Interval& i = intervals[k];
    auto free =
        std::ranges::find_if(slots, [&](const Slot& s) { return s.last < i.first && s.bytes == i.bytes; });
    if (free == slots.end()) {
      slots.push_back({i.bytes, plan.bytes, i.last});
      plan.bytes = plan.bytes + kAlignment * sym::ceildiv(i.bytes, kAlignment);
      free = slots.end() - 1;
    }
    free->last = i.last;
    plan.offsets[k] = free->offset;
  }
  return plan;
}

}  // namespace oxy::sched
