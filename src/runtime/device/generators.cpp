#include "runtime/device/generators.h"

#include <ATen/Context.h>

#include <mutex>

#include "runtime/values/convert.h"

namespace oxy::runtime {

std::optional<c10::Device> random_device(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    if (!draws_numbers(*node.op, node.args)) continue;
    for (const graph::ValueId id : node.outputs)
      if (id != graph::kNoValue) return device_to_torch(graph.meta(id).device);
  }
  return std::nullopt;
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

KeepsGenerator::KeepsGenerator(std::optional<c10::Device> device) : device_(device) {
  if (device_) state_ = generator_state(*device_);
}

KeepsGenerator::~KeepsGenerator() {
  if (!state_.defined()) return;
  try {
    set_generator_state(*device_, state_);
  } catch (...) {  // the state came from this generator
  }
}

}  // namespace oxy::runtime
