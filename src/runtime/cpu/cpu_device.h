// How plans run on the CPU: the run-time half of the device contract (runtime/device/device.h).
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace oxy::runtime {

std::unique_ptr<DeviceRuntime> make_cpu_device();

}  // namespace oxy::runtime
