// Functions that the interpreter performs itself: one entry each in the tables of builtins_*.cpp.
#pragma once

#include <Python.h>

#include "eval/state/interpreter.h"

namespace oxy::eval {

using BuiltinHandler = Ref (*)(Interpreter& interpreter, Arguments& arguments);

// The handler for this very function or class, or nullptr.
BuiltinHandler find_builtin(PyObject* callable);

// A function that a call evaluates as any other: nothing is known of it but its code.
bool is_inlined(PyObject* callable);

}  // namespace oxy::eval
