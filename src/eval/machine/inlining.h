// Inlining: calls of Python functions, whose bytecode is interpreted.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// function(*arguments). Guards the function's code and defaults. A generator function gives a generator of
// the interpreter's. Stops at functions that are not inlined (python/inlined.h).
Ref call_python_function(Interpreter& interpreter, PyObject* function, Arguments arguments);
// The same on raw arguments that are admitted only when they are read: values[i] lies at sources[i]. `self`:
// an admitted first argument, or null. The last len(kwnames) of the values are given by keyword.
Ref call_with_unread(Interpreter& interpreter, PyObject* function, Ref self,
                     std::span<PyObject* const> values, std::span<const SourceId> sources, PyObject* kwnames);
// Puts arguments and defaults into the locals of a new frame. False: a TypeError is set.
bool bind_arguments(Interpreter& interpreter, PyObject* function, Arguments arguments, Frame& frame);

}  // namespace oxy::eval
