// Memory for tensors that nobody outside the library sees, many to a block.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>

#include "runtime/device/device.h"

namespace oxy::runtime {

// Hands out pieces of large blocks. A block is freed with the last of its pieces, so that what is allocated
// one after the other should also die so. Not thread-safe; pieces may be freed on any thread.
class SlabAllocator {
 public:
  // Its memory is that of `device`, which lives for ever.
  SlabAllocator(const DeviceRuntime& device, c10::DeviceIndex index) : device_(device), index_(index) {}
  ~SlabAllocator() { reset(); }
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  // 64-byte aligned, not resizable. `left`: the bytes that this call and later ones will ask for, all
  // together; no block is larger than that.
  c10::Storage allocate(int64_t bytes, int64_t left);
  // Later pieces come from a new block.
  void reset();

 private:
  struct Block;

  const DeviceRuntime& device_;
  c10::DeviceIndex index_;
  Block* block_ = nullptr;
  int64_t used_ = 0;  // bytes of block_
};

}  // namespace oxy::runtime
