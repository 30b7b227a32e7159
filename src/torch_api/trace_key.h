// The dispatch key that trace tensors carry: below autograd and autocast, above the choice of a backend. No
// other key of PyTorch lies there unused. From 2.13 on its own tensors without data carry it too.
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/TensorImpl.h>

namespace oxy::torch_api {

inline constexpr c10::DispatchKey kTraceKey = c10::DispatchKey::Fake;

// Whether the tensor has metadata alone.
inline bool is_without_data(const c10::TensorImpl& tensor) {
  return tensor.key_set().has(kTraceKey);
}

}  // namespace oxy::torch_api
