// The CPU's memory: torch's own, in huge pages where it is large.
#pragma once

#include "runtime/values/tensors.h"

namespace oxy::runtime {

// `bytes`, 64-byte aligned, contents undefined.
c10::DataPtr allocate_on_cpu(int64_t bytes);
// Uninitialised and resizable, with exactly these strides.
at::Tensor empty_on_cpu(const TensorSpec& spec);

}  // namespace oxy::runtime
