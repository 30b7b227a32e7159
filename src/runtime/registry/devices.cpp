// The devices that plans run on. A device is entered here.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>

#include "base/error.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/device.h"

namespace oxy::runtime {

namespace {

constexpr auto kTypes = static_cast<size_t>(c10::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);

// Read without the lock: an entry is made once and stays.
struct Registry {
  std::mutex mutex;
  std::array<std::atomic<const DeviceRuntime*>, kTypes> devices{};

  Registry() { devices[static_cast<size_t>(c10::DeviceType::CPU)] = make_cpu_device().release(); }
};

// Never destroyed: plans run while the process ends, too.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

}  // namespace

const DeviceRuntime* find_device(c10::DeviceType type) {
  return registry().devices.at(static_cast<size_t>(type)).load(std::memory_order_acquire);
}

const DeviceRuntime& device_runtime(c10::DeviceType type) {
  const DeviceRuntime* const found = find_device(type);
  if (found == nullptr)
    throw Unsupported(fmt::format("device {}", c10::DeviceTypeName(type, /*lower_case=*/true)),
                      "the runtime executes plans on the CPU");
  return *found;
}

void register_device(c10::DeviceType type, std::unique_ptr<DeviceRuntime> device) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  auto& entry = known.devices.at(static_cast<size_t>(type));
  check(entry.load() == nullptr, "there is a runtime for this kind of device");
  entry.store(device.release(), std::memory_order_release);
}

}  // namespace oxy::runtime
