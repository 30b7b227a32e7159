// How cuDNN and cuBLAS want tensors laid out and padded, and which of their products generated kernels
// compute.
#pragma once

#include "runtime/device/packing.h"

namespace oxy::runtime {

// Of cards of this compute capability (90 for sm_90). Lives for ever. It packs nothing: cuBLAS and cuDNN take
// weights as they are.
const Packing& cuda_packing(int capability);

}  // namespace oxy::runtime
