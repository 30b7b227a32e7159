// What C code is shown of the program's objects.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `object` with every external container below it materialised: safe to hand to C code that looks inside.
// Throws Break if something below it cannot be shown to C code.
Ref plain(Interpreter& interpreter, PyObject* object, const char* what);
// The same of an object from outside alone: what the region has made is what C code sees.
Ref known(Interpreter& interpreter, PyObject* object, const char* what);

}  // namespace oxy::eval
