#include "runtime/cuda/launch.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace oxy::runtime {

namespace {

// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION. The kernel waits itself for those before it. While a
// stream is recorded the driver makes such edges of the graph of it.
constexpr backend::cuda::LaunchAttribute kEarlyStart{.kind = 6, .value = {1}};

class GridQueue : public LaunchQueue {
 public:
  GridQueue(const backend::cuda::Driver& driver, c10::DeviceIndex index)
      : driver_(driver), guard_(c10::DeviceType::CUDA), device_(c10::DeviceType::CUDA, index) {}

  void begin_call() override { stream_ = guard_.getStream(device_).native_handle(); }

  void launch(const PreparedLaunch& launch, void* const* buffers) override {
    const auto& [function, size] = std::get<PreparedGrid>(launch.shape);
    arguments_.clear();
    for (size_t i = 0; i < launch.buffers.size(); ++i) arguments_.push_back(const_cast<void**>(&buffers[i]));
    // The driver reads as many bytes as the kernel's argument has, of the low end first.
    for (const int64_t& value : launch.sizes) arguments_.push_back(const_cast<int64_t*>(&value));
    // The default stream has no device of its own: it is the current one's.
    c10::OptionalDeviceGuard other;
    if (stream_ == nullptr && guard_.getDevice() != device_) other.reset_device(device_);
    void* null = nullptr;
    for (int32_t i = 0; i < function.null_pointers; ++i) arguments_.push_back(&null);
    const backend::cuda::LaunchConfig config{
        .grid = {static_cast<unsigned>(size[0]), static_cast<unsigned>(size[1]),
                 static_cast<unsigned>(size[2])},
        .block = {static_cast<unsigned>(function.threads), 1, 1},
        .shared_bytes = static_cast<unsigned>(function.shared_bytes),
        .stream = stream_,
        .attributes = &kEarlyStart,
        .attribute_count = function.starts_early ? 1U : 0U};
    backend::cuda::check_call(driver_, driver_.launch(&config, function.handle, arguments_.data(), nullptr),
                              "to launch a kernel");
  }

 private:
  const backend::cuda::Driver& driver_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Device device_;
  void* stream_ = nullptr;        // of the running call
  std::vector<void*> arguments_;  // of one launch
};

}  // namespace

std::unique_ptr<LaunchQueue> make_grid_queue(const backend::cuda::Driver& driver, c10::DeviceIndex index) {
  return std::make_unique<GridQueue>(driver, index);
}

}  // namespace oxy::runtime
