// Convolutions that are tried out while a program is compiled and begins to run. cuDNN takes long for the
// first one of each kind, since it loads its libraries and kernels then. Threads of the background share
// that work with those of the program.
#pragma once

#include <c10/core/Device.h>

#include <mutex>
#include <set>
#include <string>

#include "backend/cuda/load/driver.h"
#include "graph/graph.h"

namespace oxy::runtime {

// Thread-safe.
class Rehearsals {
 public:
  // `driver` lives for ever.
  explicit Rehearsals(const backend::cuda::Driver& driver) : driver_(driver) {}

  // Has the background perform each convolution of the graph that is new in this process once, on the default
  // stream of the device with this index, with operands that nobody has initialised. What fails is left to
  // the graph. Sizes that are symbols have their values at hand (sym/hints.h). Large convolutions are left
  // out, as their operands need memory, and all of them where PyTorch is asked to time its algorithms.
  void add(const graph::Graph& graph, c10::DeviceIndex index) noexcept;

 private:
  void begin(const graph::Graph& graph, c10::DeviceIndex index);

  const backend::cuda::Driver& driver_;
  std::mutex mutex_;
  std::set<std::string> begun_;  // by operator, arguments, types, sizes and strides
};

}  // namespace oxy::runtime
