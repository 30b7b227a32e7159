// The state of the process and the thread that torch functions read unseen: one fixed guard of every capture.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "runtime/device/autocast.h"

namespace oxy::driver {

struct GlobalState {
  uint64_t flags = 0;        // grad mode, inference mode, determinism, backend switches
  uint64_t no_autocast = 0;  // the dispatch keys of the devices that have none
  int32_t default_dtype = 0;
  // On all devices: programs ask for those of devices that they do not use, too.
  std::array<c10::ScalarType, runtime::kAutocastDevices.size()> autocast_types{};
  int32_t product_precision = 0;  // of float32 matrix products on the CPU: at::Float32Precision
  int32_t threads = 0;
  int32_t digits = 0;  // sys.get_int_max_str_digits()
  int32_t torch_function_modes = 0;
  int32_t dispatch_modes = 0;
  int32_t functorch_level = 0;
  bool saved_tensor_hooks = false;
  bool anomaly_mode = false;
  bool forward_gradients = false;  // a level of forward-mode differentiation is entered
  bool jit_tracing = false;        // torch.jit.trace() sees what runs
  friend bool operator==(const GlobalState&, const GlobalState&) = default;

  static GlobalState current();
  // "grad mode" etc.: the first thing that differs.
  std::string difference(const GlobalState& other) const;
  // Python code watches every operator or saved tensor: only eager shows it what it is to see.
  bool needs_eager() const {
    return torch_function_modes || dispatch_modes || functorch_level || saved_tensor_hooks || anomaly_mode ||
           forward_gradients || jit_tracing;
  }
};

}  // namespace oxy::driver
