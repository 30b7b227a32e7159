#include "backend/shared/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "sym/hints.h"

namespace oxy::backend {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kSmallestTemporary = int64_t{64} << 10;  // bytes that are worth an allocation
constexpr int64_t kTolerance = 256;               // an arena may add 1 / kTolerance of the least peak to it,
constexpr int64_t kMostAdded = int64_t{4} << 20;  // and so many bytes
constexpr int64_t kLimits = 16;                   // sizes of the arena that are tried
constexpr int64_t kPlaceVariables = int64_t{1} << 43;  // far above those of sizes and loops

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

// Blocks and other memory with numbers for sizes.
struct Span {
  int64_t bytes;
  int32_t first;
  int32_t last;
};

Span span_of(const Interval& interval) {
  return {sym::estimate(interval.bytes), interval.first, interval.last};
}

// Bytes in use, step by step.
class Usage {
 public:
  explicit Usage(int32_t steps) : change_(static_cast<size_t>(steps) + 1) {}

  void add(const Span& span) {
    if (span.last < span.first) return;
    const auto steps = static_cast<int32_t>(change_.size()) - 1;
    change_[static_cast<size_t>(std::clamp(span.first, 0, steps))] += span.bytes;
    if (span.last < steps) change_[static_cast<size_t>(span.last) + 1] -= span.bytes;
  }

  int64_t peak() const {
    int64_t now = 0, most = 0;
    for (const int64_t change : change_) most = std::max(most, now += change);
    return most;
  }

 private:
  std::vector<int64_t> change_;
};

class Planner {
 public:
  Planner(const std::vector<Block>& blocks, const std::vector<Interval>& others, int32_t steps)
      : blocks_(blocks), outside_(steps) {
    for (const Block& block : blocks) spans_.push_back(span_of(block.interval));
    for (const Interval& interval : others) outside_.add(span_of(interval));
  }

  MemoryPlan plan() const {
    Arena best = arena(std::numeric_limits<int64_t>::max());
    bool may_any_leave = false;
    for (size_t k = 0; k < blocks_.size(); ++k) may_any_leave = may_any_leave || may_leave(k);
    if (!may_any_leave) return with_symbols(best);
    Usage everything = outside_;
    for (const Span& span : spans_) everything.add(span);
    const int64_t least = everything.peak();
    const int64_t whole = best.bytes;
    const int64_t good = least + std::min(least / kTolerance, kMostAdded);
    int64_t best_peak = peak_of(best);
    for (int64_t n = kLimits - 1; n >= 0 && best_peak > good; --n) {
      Arena tried = arena(whole / kLimits * n);
      const int64_t peak = peak_of(tried);
      if (peak < best_peak) best = std::move(tried), best_peak = peak;
    }
    return with_symbols(best);
  }

 private:
  struct Arena {
    std::vector<std::optional<int64_t>> offsets;
    int64_t bytes = 0;
  };

  bool may_leave(size_t k) const {
    return blocks_[k].may_be_temporary && spans_[k].bytes >= kSmallestTemporary;
  }

  int64_t peak_of(const Arena& arena) const {
    Usage usage = outside_;
    for (size_t k = 0; k < spans_.size(); ++k)
      if (!arena.offsets[k]) usage.add(spans_[k]);
    return arena.bytes + usage.peak();
  }

  // An arena in which no block that may be a temporary ends beyond `limit`.
  Arena arena(int64_t limit) const {
    Arena arena;
    arena.offsets.resize(spans_.size());
    std::vector<size_t> order(spans_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t k) { return spans_[k].bytes; });
    std::vector<Placed> placed;
    for (size_t k : order) {
      const Span& span = spans_[k];
      const int64_t bytes = aligned(span.bytes);
      const int64_t offset = find_place(placed, bytes, span.first, span.last);
      if (offset + bytes > limit && may_leave(k)) continue;
      const Placed block{offset, bytes, span.first, span.last};
      placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Placed::offset), block);
      arena.offsets[k] = offset;
      arena.bytes = std::max(arena.bytes, offset + bytes);
    }
    return arena;
  }

  bool overlap_in_time(size_t a, size_t b) const {
    return spans_[a].first <= spans_[b].last && spans_[b].first <= spans_[a].last;
  }

  // The same order of blocks for all sizes.
  MemoryPlan with_symbols(const Arena& arena) const {
    MemoryPlan plan;
    plan.offsets.resize(blocks_.size());
    plan.arena_bytes = arena.bytes;
    const auto is_number = [](const Block& block) { return block.interval.bytes.is_constant(); };
    if (std::ranges::all_of(blocks_, is_number)) {
      std::ranges::copy(arena.offsets, plan.offsets.begin());
      return plan;
    }
    std::vector<size_t> order;  // from the bottom to the top
    for (size_t k = 0; k < blocks_.size(); ++k)
      if (arena.offsets[k]) order.push_back(k);
    std::ranges::stable_sort(order, {}, [&](size_t k) { return *arena.offsets[k]; });
    std::vector<Expr> ends;                              // by place in `order`
    std::vector<std::vector<bool>> below(order.size());  // what lies below, directly or not
    std::vector<bool> is_top(order.size(), true);
    for (size_t i = 0; i < order.size(); ++i) {
      below[i].resize(i, false);
      Expr offset = 0;
      for (size_t j = i; j-- > 0;) {
        if (below[i][j] || !overlap_in_time(order[i], order[j])) continue;
        offset = sym::max(offset, ends[j]);
        is_top[j] = false;
        below[i][j] = true;
        for (size_t n = 0; n < j; ++n)
          if (below[j][n]) below[i][n] = true;
      }
      if (!offset.is_constant() && offset.kind() != sym::Kind::Variable) {
        const auto number = static_cast<int64_t>(plan.definitions.size());
        Expr variable =
            Expr::variable(fmt::format("place{}", number), kPlaceVariables + number, {0, sym::kMaxInt});
        plan.definitions.push_back({variable, std::move(offset)});
        offset = std::move(variable);
      }
      plan.offsets[order[i]] = offset;
      // Of sizes of 0 the expression for the bytes of a layout with gaps may be negative.
      const Expr bytes = sym::max(blocks_[order[i]].interval.bytes, 0);
      ends.push_back(offset + kAlignment * sym::ceildiv(bytes, kAlignment));
    }
    plan.arena_bytes = 0;
    for (size_t i = 0; i < order.size(); ++i)
      if (is_top[i]) plan.arena_bytes = sym::max(plan.arena_bytes, ends[i]);
    return plan;
  }

  const std::vector<Block>& blocks_;
  Usage outside_;
  std::vector<Span> spans_;  // by block
};

}  // namespace

MemoryPlan plan_memory(const std::vector<Block>& blocks, const std::vector<Interval>& others, int32_t steps) {
  return Planner(blocks, others, steps).plan();
}

}  // namespace oxy::backend
