// What a thread allocates on CUDA devices while work is recorded, and when.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace oxy::runtime {

inline constexpr size_t kStillAllocated = std::numeric_limits<size_t>::max();

struct LoggedAllocation {
  uintptr_t address = 0;
  int64_t bytes = 0;
  // The nodes [first_node, end_node) of the recorded work may use it.
  size_t first_node = 0;
  size_t end_node = kStillAllocated;

  bool contains(uintptr_t pointer) const {
    return pointer >= address && pointer < address + static_cast<uintptr_t>(bytes);
  }
  bool is_alive_at(size_t node) const { return node >= first_node && node < end_node; }
};

// Logs what this thread allocates and frees while the object lives. It stands in the profiler's place, to
// which PyTorch's allocators report; the profiler sees nothing meanwhile.
class AllocationLog {
 public:
  // `node_count`: how many nodes have been recorded so far.
  explicit AllocationLog(std::function<size_t()> node_count);
  AllocationLog(const AllocationLog&) = delete;
  AllocationLog& operator=(const AllocationLog&) = delete;

  const std::vector<LoggedAllocation>& allocations() const;

 private:
  class Reports;
  std::shared_ptr<Reports> reports_;
  c10::DebugInfoGuard guard_;
};

}  // namespace oxy::runtime
