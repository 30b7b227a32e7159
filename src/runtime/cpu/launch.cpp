#include "runtime/cpu/launch.h"

#include <c10/core/Allocator.h>

#include <atomic>

#include "base/error.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/parallel.h"

namespace oxy::runtime {

namespace {

struct SliceContext {
  const PreparedSlices& slices;
  const int64_t* sizes;
  void* const* buffers;
  char* scratch;
  std::atomic<int> status{0};
};

void run_slice(void* context, int thread, int64_t begin, int64_t end) {
  auto& slice = *static_cast<SliceContext*>(context);
  char* const scratch = slice.scratch ? slice.scratch + thread * slice.slices.scratch_bytes : nullptr;
  const int status = slice.slices.function(slice.buffers, slice.sizes, scratch, begin, end);
  if (status != 0) slice.status.store(status, std::memory_order_relaxed);
}

class SliceQueue : public LaunchQueue {
 public:
  explicit SliceQueue(int64_t scratch_bytes) : scratch_bytes_(scratch_bytes) {}

  void launch(const PreparedLaunch& launch, void* const* buffers) override {
    const PreparedSlices& slices = std::get<PreparedSlices>(launch.shape);
    const int threads = slices.extent > slices.grain ? pool_threads() : 1;
    char* const scratch = slices.scratch_bytes > 0 ? scratch_for(threads) : nullptr;
    int status = 0;
    if (threads == 1) {
      status = slices.function(buffers, launch.sizes.data(), scratch, 0, slices.extent);
    } else {
      SliceContext context{slices, launch.sizes.data(), buffers, scratch};
      parallel_slices(slices.extent, slices.grain, &context, run_slice);
      status = context.status.load(std::memory_order_relaxed);
    }
    if (status == backend::kIndexError) throw LeftToEager();
    check(status == 0, "a kernel returned an unknown status");
  }

  int64_t held_bytes() const override { return scratch_bytes_ * scratch_threads_; }

 private:
  char* scratch_for(int threads) {
    if (threads > scratch_threads_) {
      scratch_ = allocate_on_cpu(scratch_bytes_ * threads);
      scratch_threads_ = threads;
    }
    return static_cast<char*>(scratch_.get());
  }

  int64_t scratch_bytes_;
  int scratch_threads_ = 0;
  c10::DataPtr scratch_;
};

}  // namespace

std::unique_ptr<LaunchQueue> make_slice_queue(int64_t scratch_bytes) {
  return std::make_unique<SliceQueue>(scratch_bytes);
}

}  // namespace oxy::runtime
