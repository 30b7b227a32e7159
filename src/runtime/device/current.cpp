#include "runtime/device/current.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "runtime/values/host.h"

namespace oxy::runtime {

c10::DeviceIndex current_device_index() {
  static const std::optional<c10::DeviceType> accelerator = at::accelerator::getAccelerator();
  if (!accelerator) return -1;
  return c10::impl::VirtualGuardImpl(*accelerator).getDevice().index();
}

c10::Device with_index(c10::Device device) {
  if (device.has_index() || device.type() == kHost) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

}  // namespace oxy::runtime
