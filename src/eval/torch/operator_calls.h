// Calls of torch.ops.<library>.<name>, with or without an overload.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Calls the operator for real, so that it is recorded as one call. Ends the segment if recording would not do
// what calling it does: Python code that stands behind it would run while the program is captured and never
// again.
Ref call_operator(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
