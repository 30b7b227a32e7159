// How cuDNN and cuBLAS want tensors laid out and padded, and which of their products generated kernels
// compute.
#pragma once

#include "runtime/device/packing.h"

namespace oxy::runtime {

// Lives for ever. It packs nothing: cuBLAS and cuDNN take weights as they are.
const Packing& cuda_packing();

}  // namespace oxy::runtime
