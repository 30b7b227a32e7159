// Whether eager's kernel takes the types of a call.
#pragma once

#include <span>

#include "torch_api/symbolic_node.h"
#include "trace/session/operator_info.h"

namespace oxy::trace {

// Shape rules and meta kernels know dtypes by promotion alone. This asks eager's kernel, once for each
// operator and dtypes, on tensors of one element. Throws CannotTrace if the kernel refuses them. Only for
// operators with a shape rule: some others trust the sizes among their arguments and would read beyond the
// one element.
void check_types(const OperatorInfo& info, std::span<const c10::IValue> call,
                 const torch_api::Symbols* symbols);

}  // namespace oxy::trace
