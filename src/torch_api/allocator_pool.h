// A part of the memory of PyTorch's CUDA allocator that is handed out to its owner alone.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <utility>

namespace oxy::torch_api {

// While this object lives, blocks that are freed stay in the pool, so that recorded work may write to them.
// Afterwards PyTorch takes them back, each when its tensor is gone.
class AllocatorPool {
 public:
  // Takes the GIL, as all members do.
  explicit AllocatorPool(c10::DeviceIndex device);
  ~AllocatorPool();
  AllocatorPool(const AllocatorPool&) = delete;
  AllocatorPool& operator=(const AllocatorPool&) = delete;

  // All that this thread allocates on the device comes from the pool for a while. Does not nest.
  class Use {
   public:
    explicit Use(AllocatorPool& pool) : pool_(pool) { pool_.begin(); }
    ~Use() { pool_.end(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    AllocatorPool& pool_;
  };

 private:
  void begin();
  void end() noexcept;

  c10::DeviceIndex device_;
  std::pair<uint64_t, uint64_t> id_;  // at::MempoolId_t
  bool is_made_ = false;
};

}  // namespace oxy::torch_api
