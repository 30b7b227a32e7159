// Makers of CUDA graphs.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "backend/cuda/load/driver.h"
#include "runtime/device/device_graph.h"

namespace oxy::runtime {

// The maker of the device's current stream, made when it is first asked for. Null if the
// caller captures the stream at the moment. Precondition: the driver has the functions for graphs.
std::shared_ptr<DeviceGraphMaker> cuda_graph_maker(const backend::cuda::Driver& driver,
                                                   c10::DeviceIndex device);

}  // namespace oxy::runtime
