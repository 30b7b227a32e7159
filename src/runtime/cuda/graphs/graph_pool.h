// A part of the memory of PyTorch's CUDA allocator that is handed out to its owner alone.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <utility>

#include "backend/cuda/load/driver.h"

namespace oxy::runtime {

// Gives back to the device what PyTorch's allocator has cached there and no tensor uses. The caches of other
// devices stay. Takes the GIL, releases it for a while, and waits for the device. While the program captures
// a stream, or uses a pool, nothing of the common cache is given back.
void empty_cache(const backend::cuda::Driver& driver, c10::DeviceIndex device);

// While this object lives, blocks that are freed stay in the pool, so that recorded work may write to them.
// When it ends, blocks in which no tensor is left are given back to the device. All members take the GIL, and
// the destructor releases it for a while. `driver` lives for ever.
class GraphPool {
 public:
  using Id = std::pair<uint64_t, uint64_t>;  // at::MempoolId_t

  GraphPool(const backend::cuda::Driver& driver, c10::DeviceIndex device);
  ~GraphPool();
  GraphPool(const GraphPool&) = delete;
  GraphPool& operator=(const GraphPool&) = delete;

  // All that this thread allocates on the device comes from the pool for a while. Does not nest.
  class Use {
   public:
    explicit Use(GraphPool& pool) : pool_(pool) { pool_.begin(); }
    ~Use() { pool_.end(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    GraphPool& pool_;
  };

 private:
  void begin();
  void end() noexcept;

  const backend::cuda::Driver& driver_;
  c10::DeviceIndex device_;
  Id id_;
  bool is_made_ = false;
};

}  // namespace oxy::runtime
