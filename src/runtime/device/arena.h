// Memory for the intermediates of one call of a plan.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <memory>

namespace oxy::runtime {

// Memory that is one call's until it is released. 64-byte aligned, contents undefined.
struct Arena {
  c10::DataPtr memory;
  int64_t bytes = 0;
};

// Where the arenas of a kind of device come from. Thread-safe.
class ArenaSource {
 public:
  virtual ~ArenaSource() = default;
  // At least `bytes`, on the device with this index. Throws what torch's allocator throws.
  virtual Arena take(int64_t bytes, c10::DeviceIndex index) = 0;
  virtual void release(Arena arena) noexcept = 0;
  // Says that a plan has an arena of so many bytes, as long as the token lives: memory may be kept between
  // calls while somebody needs it. Null: nothing is kept.
  virtual std::shared_ptr<void> announce(int64_t /*bytes*/) { return nullptr; }
  // Frees what is kept idle and would be mostly unused by a call that needs `bytes`: for a call that begins
  // at the peak of memory, as a backward pass does.
  virtual void drop_idle_above(int64_t /*bytes*/) {}
};

}  // namespace oxy::runtime
