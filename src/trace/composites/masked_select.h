// torch.masked_select() with gradients for a number of elements that data tell. PyTorch's formula wants
// numbers for sizes.
#pragma once

#include <ATen/core/Tensor.h>

namespace oxy::trace {

// The elements of `self` where `mask`, a tensor of bools of the same shape, is true. Like PyTorch's, the node
// holds both, so that a write to one of them before the backward pass is an error.
at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask);

}  // namespace oxy::trace
