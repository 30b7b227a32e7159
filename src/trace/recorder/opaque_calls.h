// Recording of opaque operators: operators of libraries that are not torch's (aten/opaque.h).
#pragma once

#include <span>
#include <vector>

#include "trace/session/operator_info.h"
#include "trace/session/session.h"

namespace oxy::trace {

// Records a call and gives what the operator returns. `args`: the arguments as the graph has them; `call`:
// the same as the dispatcher has them. The call becomes a node without writes and aliases
// (runtime::functional_call). Nodes behind it copy the written values to the arguments, and make the aliases
// as views of arguments. Throws CannotTrace if the call cannot be recorded.
std::vector<c10::IValue> record_opaque(Session& session, const OperatorInfo& info,
                                       std::vector<graph::Argument> args, NodeHistory history,
                                       std::span<const c10::IValue> call);

}  // namespace oxy::trace
