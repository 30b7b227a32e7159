// A CUDA graph whose addresses and random numbers can be replaced.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "backend/cuda/load/driver.h"
#include "runtime/cuda/graphs/address_places.h"
#include "runtime/cuda/graphs/draw_places.h"
#include "runtime/device/device_graph.h"

namespace oxy::runtime {

// `nodes`: those of `pass` that have addresses of movable memories. `draws`: what draws from the generator.
// `device`: where the graph will be replayed.
std::unique_ptr<DeviceGraph> make_graph(const backend::cuda::Driver& driver, c10::DeviceIndex device,
                                        CapturedPass pass, std::vector<MovableNode> nodes,
                                        std::vector<DrawPlace> draws);

}  // namespace oxy::runtime
