// Constants of code objects, and arguments that stay the same from call to call.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Registers a constant of a code object. Tuples and frozensets among them are the same object at every run.
void note_code_constant(Interpreter& interpreter, PyObject* constant);

// Whether a later call may get the same value: a constant, an external object, or a tuple of these.
bool lasts(Interpreter& interpreter, PyObject* argument);

}  // namespace oxy::eval
