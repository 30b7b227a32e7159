// Which tensors are worth another plan of the backward pass, to save their bytes or to do without a copy.
#pragma once

#include "aten/tensor_meta.h"

namespace oxy::passes {

// A mebibyte or more, as far as sizes are known. Fewer bytes stay in a cache, and take no time to copy.
bool has_many_bytes(const TensorMeta& meta);

}  // namespace oxy::passes
