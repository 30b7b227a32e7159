// Launches on an NVIDIA GPU: grids of programs, on the caller's current stream.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <string_view>

#include "backend/cuda/load/driver.h"
#include "runtime/device/launch.h"

namespace oxy::runtime {

// What the user reads of an error (`text`: the driver's) that came up at a launch. `origin` may be null: not
// known. `is_blocking`: launches wait for their end, so that the error is this one's.
std::string launch_error(std::string_view text, const plan::LaunchOrigin* origin, bool is_blocking);

// For the device with this index. `driver` lives for ever.
std::unique_ptr<LaunchQueue> make_grid_queue(const backend::cuda::Driver& driver, c10::DeviceIndex index);

}  // namespace oxy::runtime
