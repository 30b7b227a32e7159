// Calls of operator objects: torch.ops.<library>.<name>, with or without an overload, and custom operators.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Calls the operator for real on trace tensors, which records one node. Stops if Python code stands behind
// the operator: it would run during the capture and never again.
Ref call_operator(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
