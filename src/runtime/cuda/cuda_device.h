// How plans run on NVIDIA GPUs: the run-time half of the device contract (runtime/device/device.h). Memory
// comes from PyTorch's allocator, launches go to the driver, all other work is PyTorch's. Nothing of
// PyTorch's CUDA libraries is linked, so that one extension serves CPU-only builds of PyTorch as well.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace oxy::runtime {

// Null where plans cannot run; `missing` then says what is missing, in a sentence for the user.
std::unique_ptr<DeviceRuntime> make_cuda_device(std::string& missing);

}  // namespace oxy::runtime
