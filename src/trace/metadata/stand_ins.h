// Metadata of a call's results from PyTorch's kernels, which are called on other tensors in place of the
// recorded ones.
#pragma once

#include <span>

#include "torch_api/symbolic_node.h"
#include "trace/session/operator_info.h"
#include "trace/session/result_metadata.h"

namespace oxy::trace {

// The kinds of tensors that take the place of trace tensors in a call that finds out metadata.
enum class StandIn : uint8_t {
  Meta,          // on PyTorch's meta device
  Zeros,         // real ones on the CPU; 32-bit integers are ones
  Single,        // real ones of the same rank and device, with one element
  SingleOnHost,  // likewise, on the CPU
};

// What the operator's kernel makes of such tensors, on the device where the call's results are: of the sizes
// at hand, where there are symbols. Throws what the kernel throws, or CannotTrace if a meta kernel does not
// cover the call.
ResultMetadata from_kernel(const OperatorInfo& info, std::span<const c10::IValue> call, StandIn kind,
                           const torch_api::Symbols* symbols);

}  // namespace oxy::trace
