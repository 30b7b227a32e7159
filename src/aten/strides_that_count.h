// Metadata as far as they can be told apart: for comparisons of what two rules give.
#pragma once

#include "aten/tensor_meta.h"

namespace oxy {

// `meta` with stride 1 wherever a dimension has one index at most, and with offset 0 if there is no element:
// these are never used to reach an element.
TensorMeta with_strides_that_count(TensorMeta meta);

}  // namespace oxy
