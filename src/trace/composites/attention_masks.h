// Masks of attention in a form that more of PyTorch's kernels take.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace oxy::trace {

// What says the same as `mask`, a trace tensor: nothing where it is true everywhere whatever the inputs are,
// which masks of sizes alone often are. The kernels of devices want elements of a row side by side, so there
// a mask that repeats one along rows is copied.
std::optional<at::Tensor> plain_mask(const at::Tensor& mask);

}  // namespace oxy::trace
