// Launches on the CPU: the slices of a kernel on the threads of torch's pool.
#pragma once

#include <memory>

#include "runtime/device/launch.h"

namespace oxy::runtime {

// `scratch_bytes`: what a launch needs for one thread, at most.
std::unique_ptr<LaunchQueue> make_slice_queue(int64_t scratch_bytes);

}  // namespace oxy::runtime
