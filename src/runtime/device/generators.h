// The default generators, which random operators draw from unless the program gives them another.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace oxy::runtime {

// The devices on which a graph draws, each once: those of its random operators' results.
std::vector<c10::Device> random_devices(const graph::Graph& graph);

// The state of a device's default generator, as torch.get_rng_state() gives it.
at::Tensor generator_state(c10::Device device);
void set_generator_state(c10::Device device, const at::Tensor& state);

// Puts the states of devices' default generators back at the end, unless the calls that drew succeeded: a run
// that fails is made again in eager, which must draw the same numbers.
class KeepsGenerators {
 public:
  explicit KeepsGenerators(std::span<const c10::Device> devices);
  ~KeepsGenerators();
  KeepsGenerators(const KeepsGenerators&) = delete;
  KeepsGenerators& operator=(const KeepsGenerators&) = delete;
  // Leaves the generators where the calls have brought them.
  void advance() { states_.clear(); }

 private:
  std::vector<std::pair<c10::Device, at::Tensor>> states_;
};

// Devices' default generators in other states for a while, one a device.
class WithGeneratorStates {
 public:
  WithGeneratorStates(std::span<const c10::Device> devices, std::span<const at::Tensor> states)
      : keeps_(devices) {
    for (size_t i = 0; i < devices.size(); ++i) set_generator_state(devices[i], states[i]);
  }

 private:
  KeepsGenerators keeps_;
};

}  // namespace oxy::runtime
