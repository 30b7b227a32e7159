#include "runtime/cuda/graphs/allocation_log.h"

#include <utility>

namespace oxy::runtime {

class AllocationLog::Reports : public c10::MemoryReportingInfoBase {
 public:
  explicit Reports(std::function<size_t()> node_count) : node_count_(std::move(node_count)) {}

  // `change`: bytes, negative when they are freed.
  void reportMemoryUsage(void* pointer, int64_t change, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device device) override {
    if (device.type() != c10::DeviceType::CUDA || change == 0) return;
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (change > 0) {
      allocations.push_back({address, change, node_count_()});
      return;
    }
    for (auto it = allocations.rbegin(); it != allocations.rend(); ++it)
      if (it->address == address && it->end_node == kStillAllocated) {
        it->end_node = node_count_();
        return;
      }
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::vector<LoggedAllocation> allocations;

 private:
  std::function<size_t()> node_count_;
};

AllocationLog::AllocationLog(std::function<size_t()> node_count)
    : reports_(std::make_shared<Reports>(std::move(node_count))),
      guard_(c10::DebugInfoKind::PROFILER_STATE, reports_) {}

const std::vector<LoggedAllocation>& AllocationLog::allocations() const {
  return reports_->allocations;
}

}  // namespace oxy::runtime
