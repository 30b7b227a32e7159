// A part of the memory of PyTorch's CUDA allocator that is handed out to its owner alone.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <utility>

#include "backend/cuda/load/driver.h"

namespace oxy::runtime {

// Gives back to the device what PyTorch's allocator has cached and no tensor uses: all of it, or, while
// somebody captures or uses a pool, that of pools which nobody owns any more. Takes the GIL, and waits for
// the device.
void empty_cache(const backend::cuda::Driver& driver);

// While this object lives, blocks that are freed stay in the pool, so that recorded work may write to them.
// Afterwards those in which no tensor is left are given back to the device: at once if the thread holds the
// GIL, else when the interpreter next runs Python code.
class GraphPool {
 public:
  using Id = std::pair<uint64_t, uint64_t>;  // at::MempoolId_t

  // Takes the GIL, as Use does. `driver` lives for ever.
  GraphPool(const backend::cuda::Driver& driver, c10::DeviceIndex device);
  ~GraphPool();  // does not wait for the GIL
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
