// Functions of the program's that torch calls during a capture: the fake functions and formulas for gradients
// of its own operators.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The function has run for real, and its result is part of the capture. Guards its identity, its code, and
// everything that it reads by name: numbers and texts by value, functions as this one, other objects by
// identity. A callable that is not a Python function is only pinned.
void rely_on_what_it_reads(Interpreter& interpreter, PyObject* function);

}  // namespace oxy::eval
