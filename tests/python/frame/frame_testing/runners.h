// Segment runners that stand in for the compiler.
#pragma once

#include <memory>

#include "cpy/ref.h"
#include "hook/segment.h"

namespace oxy::frame_testing {

struct Counts {
  long frames = 0;  // segments that started at a frame's entry
  long segments = 0;
};
extern Counts counts;

// Captures nothing: every instruction is a break. Wants the code objects of the set, or all for None.
std::unique_ptr<hook::SegmentRunner> make_break_runner(cpy::Ref wanted);

// The same, but hands frames over at random: one segment in `period`, as decided by `seed`.
std::unique_ptr<hook::SegmentRunner> make_random_runner(cpy::Ref wanted, unsigned seed, unsigned period);

// Calls function(state) with a dict of code, offset, locals, stack (lists to be changed in place; unbound and
// NULL are `null`), globals. It returns (kind, offset) or (kind, offset, exception): kind is "return",
// "break", "hand over", "raise", or "fail", upon which the runner throws InternalError.
std::unique_ptr<hook::SegmentRunner> make_script_runner(cpy::Ref wanted, cpy::Ref function, cpy::Ref null);

}  // namespace oxy::frame_testing
