// Calls of torch.ops.<library>.<name>, with or without an overload.
#pragma once

#include "eval/evaluator.h"

namespace oxy::eval {

// An OpOverload or OpOverloadPacket, or what torch.library.custom_op() makes.
bool is_operator_object(PyObject* callable);

// Calls the operator for real, so that it is recorded as one call. Ends the segment if recording would not do
// what calling it does: Python code that stands behind it would run while the program is captured and never
// again.
Ref call_operator(Evaluator& evaluator, PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
