// Fused attention of PyTorch's for GPUs.
#pragma once

#include "runtime/device/call_site.h"
#include "runtime/device/packing.h"

namespace oxy::runtime {

// Packing::attention(). `is_hopper`: of cards from sm_90 on.
AttentionOperator attention_on_cuda(const AttentionShape& shape, bool is_hopper);

// A call of one of these operators, whose kernels load 16 bytes at once: an operand of the program's that
// does not begin at a multiple of 16 is copied. Empty for other operators.
Invoke prepare_attention_on_cuda(const CallSite& site);

}  // namespace oxy::runtime
