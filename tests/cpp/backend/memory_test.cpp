#include "backend/shared/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sym/hints.h"

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

TEST_CASE(
    "symbolic sizes: blocks are disjoint for all sizes, and lie as tightly as constant ones for those at "
    "hand") {
  std::mt19937 random(2);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto symbol = [](int64_t id) { return sym::Expr::variable("s", id, {0, sym::kMaxInt}); };
  for (int round = 0; round < 100; ++round) {
    const auto steps = static_cast<int32_t>(pick(1, 30));
    std::vector<int64_t> at_hand;
    for (int k = 0; k < 3; ++k) at_hand.push_back(pick(1, 100));
    std::vector<Block> blocks, constant;
    for (int64_t k = pick(1, 20); k > 0; --k) {
      const auto first = static_cast<int32_t>(pick(0, steps - 1));
      const auto last = static_cast<int32_t>(pick(first, steps - 1));
      const int64_t a = pick(0, 3), b = pick(0, 3), factor = pick(1, 3000);
      sym::Expr bytes = factor;
      int64_t number = factor;
      if (a < 3) bytes = bytes * symbol(a), number *= at_hand[static_cast<size_t>(a)];
      if (b < 3) bytes = bytes * (symbol(b) + 1), number *= at_hand[static_cast<size_t>(b)] + 1;
      blocks.push_back({{bytes, first, last}});
      constant.push_back({{number, first, last}});
    }
    const sym::Hints hints({at_hand.begin(), at_hand.end()});
    const sym::HintScope scope(hints);
    const MemoryPlan plan = backend::plan_memory(blocks, {}, steps);
    for (int call = 0; call < 4; ++call) {
      std::map<int64_t, int64_t> values;
      for (int64_t k = 0; k < 3; ++k) values[k] = call == 0 ? at_hand[static_cast<size_t>(k)] : pick(0, 200);
      const auto value_of = [&](const sym::Expr& e) {
        return sym::evaluate(e, [&](int64_t id) { return std::optional(values.at(id)); });
      };
      for (const plan::Definition& d : plan.definitions) values[d.variable.variable_id()] = value_of(d.value);
      const int64_t arena = value_of(plan.arena_bytes);
      CAPTURE(round);
      CAPTURE(call);
      if (call == 0) CHECK(arena <= backend::plan_memory(constant, {}, steps).arena_bytes.constant());
      for (size_t a = 0; a < blocks.size(); ++a) {
        const int64_t begin = value_of(*plan.offsets[a]), end = begin + value_of(blocks[a].interval.bytes);
        CHECK(begin % 64 == 0);
        CHECK(end <= arena);
        for (size_t b = 0; b < a; ++b) {
          const Interval &x = blocks[a].interval, &y = blocks[b].interval;
          if (x.last < y.first || y.last < x.first) continue;
          const int64_t other = value_of(*plan.offsets[b]);
          CHECK((end <= other || other + value_of(y.bytes) <= begin));
        }
      }
    }
  }
}
