// The device of Python's numbers, and of tensors whose elements the host reads while it captures.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <span>

namespace c10 {
struct IValue;
}

namespace oxy::runtime {

inline constexpr c10::DeviceType kHost = c10::DeviceType::CPU;
inline constexpr c10::DispatchKey kHostKey = c10::DispatchKey::CPU;  // of kernels that run there

inline bool is_on_host(const at::Tensor& tensor) {
  return tensor.device().type() == kHost;
}

// Of the first tensor among a call's arguments; the host's if there is none.
c10::DeviceType device_type_of(std::span<const c10::IValue> call);

}  // namespace oxy::runtime
