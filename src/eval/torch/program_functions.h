// Functions of the program's that torch calls while a region is captured.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// What the Python function has run to is part of the capture: guards which function it is, its code, and the
// numbers, texts and functions that it and the program's functions among these read by name. Objects of other
// types are guarded by which they are. Nothing happens for other callables but that they are pinned.
void rely_on_what_it_reads(Interpreter& interpreter, PyObject* function);

}  // namespace oxy::eval
