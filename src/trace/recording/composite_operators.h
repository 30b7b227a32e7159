// Operators that PyTorch decomposes above the key of trace tensors, where a recording does not see them, and
// for which its decomposition does not do while sizes are symbols. They get kernels at autograd's keys.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace oxy::trace {

// matmul: PyTorch's own decomposition takes numbers alone in some releases.
void add_matrix_products(torch::Library& library);
// F.interpolate's: PyTorch's own decompositions take numbers alone.
void add_upsampling(torch::Library& library);
// scaled_dot_product_attention: PyTorch chooses among its kernels by sizes and strides. All of them give the
// result, so that those at hand may decide (LayoutAtHand).
void add_attention(torch::Library& library);
// einsum: the strides of the result are others if what is summed over has one index. A guard that it has not.
void add_einsum(torch::Library& library);

// LSTM, GRU and RNN of padded sequences: nodes while sizes are symbols and no gradient is asked for, since
// PyTorch's decompositions take numbers or go through the steps one by one.
void add_recurrent(torch::Library& library);
// one_hot, cov, stft, istft, matrix norms and take_along_dim, whose decompositions read data or take numbers.
void add_symbolic_composites(torch::Library& library);

// What such a kernel redispatches to: PyTorch's decomposition, which is a kernel of every device.
c10::DispatchKeySet keys_of_decomposition(c10::DispatchKeySet keys, c10::Device device);

}  // namespace oxy::trace
