// Which elements of tensors lie in the same memory.
#pragma once

#include "aten/tensor_meta.h"

namespace oxy::trace {

// Tells whether two elements of such a tensor may share memory.
bool may_overlap(const TensorMeta& meta);
// Tells whether two tensors on one storage may have an element in common.
bool may_share_elements(const TensorMeta& a, const TensorMeta& b);

}  // namespace oxy::trace
