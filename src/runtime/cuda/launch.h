// Launches on an NVIDIA GPU: grids of programs, on the caller's current stream.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "backend/cuda/load/driver.h"
#include "runtime/device/launch.h"

namespace oxy::runtime {

// For the device with this index. `driver` lives for ever.
std::unique_ptr<LaunchQueue> make_grid_queue(const backend::cuda::Driver& driver, c10::DeviceIndex index);

}  // namespace oxy::runtime
