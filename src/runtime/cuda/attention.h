// Fused attention of PyTorch's for GPUs.
#pragma once

#include "runtime/device/packing.h"

namespace oxy::runtime {

// Packing::attention(). `is_hopper`: of cards from sm_90 on.
AttentionOperator attention_on_cuda(const AttentionShape& shape, bool is_hopper);

}  // namespace oxy::runtime
