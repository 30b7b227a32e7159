// Arguments in the form in which C code may look inside them: everything that it can read is guarded.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `object` with a copy in place of every external container in it, and constants in place of varying numbers.
// Stops at an object that C code may not be given, such as one with methods of the program's. `what`: the C
// function, for the reason.
Ref plain(Interpreter& interpreter, PyObject* object, const char* what);
// The same for an external object or a varying number. Fresh objects are given back as they are.
Ref known(Interpreter& interpreter, PyObject* object, const char* what);

}  // namespace oxy::eval
