// Constants of code objects.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

void note_code_constant(Interpreter& interpreter, PyObject* constant);

// Whether a later call may be given the same value: a constant, an object from outside, or a tuple of
// these.
bool lasts(Interpreter& interpreter, PyObject* argument);

}  // namespace oxy::eval
