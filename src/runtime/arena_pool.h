// Memory for the arenas of all plans: the forward and the backward pass of a step, or the models of a
// process, seldom run at once and then use the same bytes.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

namespace oxy::runtime {

// That plans with arenas of so many bytes exist: memory is kept between calls while somebody may need it.
class ArenaNeed {
 public:
  explicit ArenaNeed(int64_t bytes);
  ~ArenaNeed();
  ArenaNeed(const ArenaNeed&) = delete;
  ArenaNeed& operator=(const ArenaNeed&) = delete;

 private:
  int64_t bytes_;
};

// Memory that is one call's until release_arena(). 64-byte aligned, contents undefined.
struct Arena {
  c10::DataPtr memory;
  int64_t bytes = 0;
};

// At least `bytes`. Thread-safe, as release_arena() is; throws what torch's allocator throws.
Arena take_arena(int64_t bytes);
void release_arena(Arena arena) noexcept;

// Frees the idle arenas that a call which needs `bytes` would leave mostly unused: for a call that begins at
// the peak of memory, as a backward pass does. Their owners' next calls pay for fresh pages.
void drop_idle_arenas_above(int64_t bytes);

}  // namespace oxy::runtime
