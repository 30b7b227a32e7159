// Operators that PyTorch decomposes above the key of trace tensors, where a recording does not see them, and
// for which its decomposition does not do while sizes are symbols. They get kernels at autograd's keys.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>
#include <torch/library.h>

namespace oxy::trace {

// Each adds the kernels of one family, which has a file of its own in this room. The list of all of them is
// kComposites in composites.cpp.
void add_attention(torch::Library& library);
void add_einsum(torch::Library& library);
void add_indexing(torch::Library& library);
void add_matrix_chains(torch::Library& library);
void add_matrix_functions(torch::Library& library);
void add_matrix_products(torch::Library& library);
void add_norms(torch::Library& library);
void add_quantiles(torch::Library& library);
void add_recurrent(torch::Library& library);
void add_recurrent_cells(torch::Library& library);
void add_reshaping(torch::Library& library);
void add_sequences(torch::Library& library);
void add_signals(torch::Library& library);
void add_upsampling(torch::Library& library);

// Adds all of them.
void add_composites(torch::Library& library);

// What a kernel redispatches to: PyTorch's decomposition, which is a kernel of every device. No key in
// between is among them, as for those who listen there (modes of Python, torch.compile) the operator is
// decomposed already. torch.compile's decompositions in Python, which take its symbolic sizes, are found
// where it traces.
c10::DispatchKeySet keys_of_decomposition(c10::Device device);
void decompose(const c10::OperatorHandle& op, c10::Device device, torch::jit::Stack* stack);
// Whether it is a trace tensor with symbols among its sizes or strides.
bool is_symbolic(const at::Tensor& tensor);

}  // namespace oxy::trace
