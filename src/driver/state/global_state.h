// The state of the process and the thread that torch functions read without being given it. Every entry
// guards it.
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/device/autocast.h"

namespace oxy::driver {

// How exact matrix products and convolutions of libraries are on GPUs. Before the process uses a GPU, changes
// are not seen.
struct GpuPrecision {
  std::array<int32_t, 2> of_floats{};  // at::Float32Precision of products and convolutions
  std::array<int32_t, 3> half_sums{};  // how cuBLAS may add up products of half precision
  int32_t library = 0;                 // at::BlasBackend
  friend bool operator==(const GpuPrecision&, const GpuPrecision&) = default;
};

struct GlobalState {
  uint64_t flags = 0;        // one bit each: grad mode, inference mode, determinism, backend switches
  uint64_t no_autocast = 0;  // dispatch keys of the devices on which autocast is off
  int32_t default_dtype = 0;
  // The dtype of autocast by device. A program may ask for that of a device that it does not use.
  std::array<c10::ScalarType, runtime::kAutocastDevices.size()> autocast_types{};
  int32_t product_precision = 0;  // of float32 matrix products on the CPU: at::Float32Precision
  GpuPrecision gpu_precision;
  int32_t threads = 0;
  int32_t device = 0;                         // the index of the current one
  int32_t digits = 0;                         // sys.get_int_max_str_digits()
  std::optional<c10::Device> default_device;  // of factories
  int32_t device_contexts = 0;                // the modes that make it
  int32_t torch_function_modes = 0;           // all others
  int32_t dispatch_modes = 0;
  int32_t functorch_level = 0;
  bool saved_tensor_hooks = false;
  bool anomaly_mode = false;
  bool forward_gradients = false;  // a level of forward-mode differentiation is entered
  bool jit_tracing = false;        // torch.jit.trace() sees what runs
  friend bool operator==(const GlobalState&, const GlobalState&) = default;

  static GlobalState current();  // of this thread
  // The name of the first setting that differs: "grad mode" ...
  std::string difference(const GlobalState& other) const;
  // Something watches single operators or saved tensors, so that calls run in eager: the reason, a text that
  // lives for ever. Null: nothing does.
  const char* why_eager() const;
};

}  // namespace oxy::driver
