// Addresses that stand in for those of other memory while work is recorded, and is not performed.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cuda/load/driver.h"
#include "runtime/device/device_graph.h"

namespace oxy::runtime {

// Each memory has a range of addresses of its own, as long as itself. They are addresses of the device to
// everybody who asks, but one small piece of memory lies behind all of them.
class DecoyMemory {
 public:
  // Throws NotReplayable if the driver refuses.
  DecoyMemory(const backend::cuda::Driver& driver, c10::DeviceIndex device,
              std::span<const MovableMemory> memories);
  ~DecoyMemory();
  DecoyMemory(const DecoyMemory&) = delete;
  DecoyMemory& operator=(const DecoyMemory&) = delete;

  // By memory, with its alignment. A memory without bytes keeps its address.
  const std::vector<uintptr_t>& addresses() const { return addresses_; }

 private:
  void map(c10::DeviceIndex device, size_t bytes);
  void free();

  const backend::cuda::Driver& driver_;
  std::vector<uintptr_t> addresses_;
  uint64_t begin_ = 0;
  size_t reserved_ = 0, mapped_ = 0;  // bytes
  uint64_t piece_ = 0;                // the memory
};

}  // namespace oxy::runtime
