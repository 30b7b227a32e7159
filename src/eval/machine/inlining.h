// Calls of Python functions.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Ref call_python_function(Interpreter& interpreter, PyObject* function, Arguments arguments);
// Evaluates the function on objects that are admitted only when they are read. `self`: an admitted first
// argument, or null; the last len(kwnames) of the values are given by keyword.
Ref call_with_unread(Interpreter& interpreter, PyObject* function, Ref self,
                     std::span<PyObject* const> values, std::span<const SourceId> sources, PyObject* kwnames);
bool bind_arguments(Interpreter& interpreter, PyObject* function, Arguments arguments, Frame& frame);

}  // namespace oxy::eval
