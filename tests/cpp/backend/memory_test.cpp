#include "backend/shared/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace oxy;
using backend::Block;
using backend::Interval;
using backend::MemoryPlan;

namespace {

constexpr int64_t kMegabyte = 1 << 20;

int64_t peak(const MemoryPlan& plan, const std::vector<Block>& blocks, const std::vector<Interval>& others,
             int32_t steps) {
  int64_t most = 0;
  for (int32_t step = 0; step < steps; ++step) {
    int64_t now = plan.arena_bytes.constant();
    const auto add = [&](const Interval& interval) {
      if (interval.first <= step && step <= interval.last) now += interval.bytes.constant();
    };
    for (const Interval& interval : others) add(interval);
    for (size_t k = 0; k < blocks.size(); ++k)
      if (!plan.offsets[k]) add(blocks[k].interval);
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("an arena that is needed where most memory is needed holds everything") {
  const std::vector<Block> blocks = {{{kMegabyte, 0, 1}, true}, {{kMegabyte, 2, 3}, true}};
  const MemoryPlan plan = backend::plan_memory(blocks, {{kMegabyte, 0, 3}}, 4);
  CHECK(plan.arena_bytes.constant() == kMegabyte);
  CHECK(plan.offsets[0] == sym::Expr(0));
  CHECK(plan.offsets[1] == sym::Expr(0));
}

TEST_CASE("a block is not held where other memory has its peak") {
  const std::vector<Interval> others = {{8 * kMegabyte, 2, 3}};
  SUBCASE("large") {
    const MemoryPlan plan = backend::plan_memory({{{kMegabyte, 0, 1}, true}}, others, 4);
    CHECK(plan.arena_bytes.constant() == 0);
    CHECK(!plan.offsets[0]);
  }
  SUBCASE("large, but its memory is shown to somebody") {
    CHECK(backend::plan_memory({{{kMegabyte, 0, 1}, false}}, others, 4).offsets[0]);
  }
  SUBCASE("small") {
    CHECK(backend::plan_memory({{{1000, 0, 1}, true}}, others, 4).offsets[0]);
  }
  SUBCASE("of no weight beside the peak") {
    CHECK(backend::plan_memory({{{kMegabyte, 0, 1}, true}}, {{1024 * kMegabyte, 2, 3}}, 4).offsets[0]);
  }
}

TEST_CASE("random lives: blocks are disjoint, and the arena raises the peak only a little") {
  std::mt19937 random(1);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const auto steps = static_cast<int32_t>(pick(1, 30));
    const auto interval = [&] {
      const auto first = static_cast<int32_t>(pick(0, steps - 1));
      return Interval{pick(1, 4 * kMegabyte), first, static_cast<int32_t>(pick(first, steps - 1))};
    };
    std::vector<Block> blocks;
    std::vector<Interval> others;
    for (int64_t k = pick(0, 20); k > 0; --k) blocks.push_back({interval(), pick(0, 3) > 0});
    for (int64_t k = pick(0, 10); k > 0; --k) others.push_back(interval());
    const MemoryPlan plan = backend::plan_memory(blocks, others, steps);
    MemoryPlan apart;  // every block on its own: no plan holds less
    apart.offsets.resize(blocks.size());
    const int64_t least = peak(apart, blocks, others, steps);
    const int64_t got = peak(plan, blocks, others, steps);
    CAPTURE(round);
    CHECK(got <= plan.arena_bytes.constant() + least);
    bool all_may_leave = true;
    for (size_t a = 0; a < blocks.size(); ++a) {
      all_may_leave =
          all_may_leave && blocks[a].may_be_temporary && blocks[a].interval.bytes.constant() > (64 << 10);
      if (!plan.offsets[a]) {
        CHECK(blocks[a].may_be_temporary);
        continue;
      }
      const int64_t begin = plan.offsets[a]->constant(), end = begin + blocks[a].interval.bytes.constant();
      CHECK(begin % 64 == 0);
      CHECK(end <= plan.arena_bytes.constant());
      for (size_t b = 0; b < a; ++b) {
        const Interval &x = blocks[a].interval, &y = blocks[b].interval;
        if (!plan.offsets[b] || x.last < y.first || y.last < x.first) continue;
        const int64_t other = plan.offsets[b]->constant();
        CHECK((end <= other || other + y.bytes.constant() <= begin));
      }
    }
    if (all_may_leave) CHECK(got <= least + least / 256);
  }
}
