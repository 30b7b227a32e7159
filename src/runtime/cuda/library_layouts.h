// In which layouts cuDNN runs convolutions fastest.
#pragma once

#include "runtime/device/packing.h"

namespace oxy::runtime {

// Lives for ever. It packs nothing: cuBLAS and cuDNN take weights as they are.
const Packing& cuda_packing();

}  // namespace oxy::runtime
