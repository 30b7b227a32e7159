#include "runtime/device/generators.h"

#include <ATen/Context.h>

#include <algorithm>
#include <mutex>

#include "runtime/values/convert.h"

namespace oxy::runtime {

std::vector<c10::Device> random_devices(const graph::Graph& graph) {
  std::vector<c10::Device> devices;
  for (const graph::Node& node : graph.nodes) {
    if (!draws_numbers(*node.op, node.args)) continue;
    for (const graph::ValueId id : node.outputs) {
      if (id == graph::kNoValue) continue;
      const c10::Device device = device_to_torch(graph.meta(id).device);
      if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
      break;
    }
  }
  return devices;
}

at::Tensor generator_state(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(c10::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

KeepsGenerators::KeepsGenerators(std::span<const c10::Device> devices) {
  for (const c10::Device& device : devices) states_.emplace_back(device, generator_state(device));
}

KeepsGenerators::~KeepsGenerators() {
  for (const auto& [device, state] : states_) {
    try {
      set_generator_state(device, state);
    } catch (...) {  // the state came from this generator
    }
  }
}

}  // namespace oxy::runtime
