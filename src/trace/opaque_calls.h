// Calls of operators that are not torch's.
#pragma once

#include <span>
#include <vector>

#include "trace/operator_info.h"
#include "trace/session.h"

namespace oxy::trace {

// Records a call of an opaque operator, whose arguments are `args` as the graph holds them and `call` as the
// dispatcher does: a node without writes and aliases (runtime::functional_call), then the writes, as copies
// to the arguments, and the aliases, as views of them. Gives what the operator returns. CannotTrace if it
// cannot be recorded.
std::vector<c10::IValue> record_opaque(Session& session, const OperatorInfo& info,
                                       std::vector<graph::Argument> args, NodeHistory history,
                                       std::span<const c10::IValue> call);

}  // namespace oxy::trace
