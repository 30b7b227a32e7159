// A CUDA graph whose addresses can be replaced.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "backend/cuda/load/driver.h"
#include "runtime/cuda/address_places.h"
#include "runtime/device/device_graph.h"

namespace oxy::runtime {

// `nodes`: those of `pass` that have addresses of movable memories. `device`: where the graph will be
// replayed.
std::unique_ptr<DeviceGraph> make_graph(const backend::cuda::Driver& driver, c10::DeviceIndex device,
                                        CapturedPass pass, std::vector<MovableNode> nodes);

}  // namespace oxy::runtime
