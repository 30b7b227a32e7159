// Matrix products of symbolic sizes. PyTorch's own decomposition of matmul takes numbers alone in some
// releases, and runs above the key of trace tensors, where a recording does not see it.
#pragma once

namespace oxy::trace {

// Gives matmul a kernel at autograd's keys of the devices that plans run on: trace tensors of symbolic sizes
// go through a decomposition of ours, all others through PyTorch's. Once a process; the kernels stay.
void add_matrix_products();

}  // namespace oxy::trace
