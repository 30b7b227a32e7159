// Upsampling (F.interpolate) of symbolic sizes. PyTorch's own decompositions take numbers alone, and run
// above the key of trace tensors, where a recording does not see them.
#pragma once

namespace oxy::trace {

// Gives the operators kernels at autograd's keys of the devices that plans run on: for trace tensors of
// symbolic sizes the size of the result is an expression, all others go on to PyTorch's decomposition. Once a
// process; the kernels stay.
void add_upsampling();

}  // namespace oxy::trace
