// Looks up builtins: functions and classes that the interpreter performs itself (builtin_families.h).
#pragma once

#include <Python.h>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Does what the real function does, with the same result and exceptions. It may change `arguments`.
using BuiltinHandler = Ref (*)(Interpreter& interpreter, Arguments& arguments);

// The handler for this function or class, by identity; null if it has none.
BuiltinHandler find_builtin(PyObject* callable);

// Whether the callable is a Python function that is simply inlined: it has no handler, no mark of the user's
// and no form in the prelude, and does not belong to torch.
bool is_inlined(PyObject* callable);

}  // namespace oxy::eval
