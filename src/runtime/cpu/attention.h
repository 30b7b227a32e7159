// Fused attention of PyTorch's for the CPU.
#pragma once

#include "runtime/device/packing.h"

namespace oxy::runtime {

// Packing::attention().
AttentionOperator attention_on_cpu(const AttentionShape& shape);

}  // namespace oxy::runtime
