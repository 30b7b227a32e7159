// The default generators, which random operators draw from unless the program gives them another.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "graph/graph.h"

namespace oxy::runtime {

// Of the device on which a graph draws: of the first random operator's result; nothing if it draws nothing.
std::optional<c10::Device> random_device(const graph::Graph& graph);

// The state of a device's default generator, as torch.get_rng_state() gives it.
at::Tensor generator_state(c10::Device device);
void set_generator_state(c10::Device device, const at::Tensor& state);

// Puts the state of a device's default generator back at the end, unless the calls that drew succeeded: a run
// that fails is made again in eager, which must draw the same numbers.
class KeepsGenerator {
 public:
  // `device`: nothing if no number is drawn.
  explicit KeepsGenerator(std::optional<c10::Device> device);
  ~KeepsGenerator();
  KeepsGenerator(const KeepsGenerator&) = delete;
  KeepsGenerator& operator=(const KeepsGenerator&) = delete;
  // Leaves the generator where the calls have brought it.
  void advance() { state_.reset(); }

 private:
  std::optional<c10::Device> device_;
  at::Tensor state_;
};

// A device's default generator in another state for a while.
class WithGeneratorState {
 public:
  WithGeneratorState(c10::Device device, const at::Tensor& state) : keeps_(device) {
    set_generator_state(device, state);
  }

 private:
  KeepsGenerator keeps_;
};

}  // namespace oxy::runtime
