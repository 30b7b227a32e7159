#include "runtime/cuda/launch.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>

#include "base/config.h"
#include "runtime/cuda/thread_context.h"

namespace oxy::runtime {

namespace {

// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION. The kernel waits itself for those before it. While a
// stream is recorded the driver makes such edges of the graph of it.
constexpr backend::cuda::LaunchAttribute kEarlyStart{.kind = 6, .value = {1}};

// CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_TIMEOUT, and those from CUDA_ERROR_ASSERT to
// CUDA_ERROR_LAUNCH_FAILED.
bool is_of_device(backend::cuda::Result result) {
  return result == 700 || result == 702 || (710 <= result && result <= 719);
}

// What is read of an error (`text`: the driver's) that came up at a launch. `origin` may be null: not known.
// `is_blocking`: launches wait for their end, so that the error is this one's.
std::string launch_error(std::string_view text, const plan::LaunchOrigin* origin, bool is_blocking) {
  std::string message = fmt::format("CUDA error: {}", text);
  const std::string kernel = origin == nullptr ? "a generated kernel" : "the kernel " + origin->kernel;
  if (!is_blocking)
    return message + fmt::format(
                         "\nIt was reported at the launch of {} and may be an earlier kernel's. "
                         "CUDA_LAUNCH_BLOCKING=1 tells which.",
                         kernel);
  message += fmt::format("\nIt is an error of {}", kernel);
  if (origin != nullptr && !origin->lines.empty())
    message += fmt::format(", which does what {} asks for", fmt::join(origin->lines, " and "));
  return message + ".";
}

class GridQueue : public LaunchQueue {
 public:
  GridQueue(const backend::cuda::Driver& driver, c10::DeviceIndex index)
      : driver_(driver), guard_(c10::DeviceType::CUDA), device_(c10::DeviceType::CUDA, index) {}

  void begin_call() override {
    ensure_context(driver_);
    stream_ = guard_.getStream(device_).native_handle();
    is_first_ = true;
  }

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
        .attribute_count = function.starts_early && !is_first_ ? 1U : 0U};
    is_first_ = false;
    const backend::cuda::Result result = driver_.launch(&config, function.handle, arguments_.data(), nullptr);
    if (result != 0) [[unlikely]]
      refuse(result, launch.origin.get());
  }

 private:
  // What the device met while it ran this kernel or an earlier one is eager's error; after it the device does
  // nothing more. Anything else is ours.
  [[noreturn]] void refuse(backend::cuda::Result result, const plan::LaunchOrigin* origin) const {
    if (!is_of_device(result)) backend::cuda::check_call(driver_, result, "to launch a kernel");
    const char* text = nullptr;
    driver_.error_text(result, &text);
    throw c10::AcceleratorError(
        {__func__, __FILE__, __LINE__}, result,
        launch_error(text ? text : "unknown error", origin, config().launch_blocking));
  }

  const backend::cuda::Driver& driver_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Device device_;
  void* stream_ = nullptr;  // of the running call
  // The first launch of a call starts when all earlier work of the stream has ended. So no later kernel of
  // the call starts before that, and what kernels read before they wait is complete: no kernel of the call
  // writes it.
  bool is_first_ = true;
  std::vector<void*> arguments_;  // of one launch
};

}  // namespace

std::unique_ptr<LaunchQueue> make_grid_queue(const backend::cuda::Driver& driver, c10::DeviceIndex index) {
  return std::make_unique<GridQueue>(driver, index);
}

}  // namespace oxy::runtime
