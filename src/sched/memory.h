// Where the buffers of a plan live.
#pragma once

#include <cstdint>
#include <vector>

#include "sym/expr.h"

namespace oxy::sched {

using sym::Expr;

// A block of the arena that is in use from step `first` to step `last`, both included.
struct Interval {
  Expr bytes;
  int32_t first = 0;
  int32_t last = 0;
};

struct ArenaPlan {
  std::vector<Expr> offsets;  // bytes, 64-byte aligned, by interval
  Expr bytes = 0;
};

// Intervals that overlap in time get disjoint places. Constant sizes: the largest first, each in the tightest
// gap. Symbolic sizes share a place only with blocks of the same size.
ArenaPlan plan_arena(const std::vector<Interval>& intervals);

}  // namespace oxy::sched
