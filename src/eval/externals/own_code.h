// Finds objects whose special methods are Python code of the program's. C code that is called during a
// capture must not come to them.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// To be called before C code looks at an object. Stops if that would run code of the program's, as it would
// run at the capture alone. `where`: the C function, for the reason.
void refuse_own_code(Interpreter& interpreter, PyObject* object, std::string_view where);
// Whether the object, or an item of an exact list, tuple or slice, has such methods. `depth`: of the
// recursion.
bool has_own_code(Interpreter& interpreter, PyObject* object, int depth = 0);
// Whether the object's class has such methods.
bool has_own_special(Interpreter& interpreter, PyObject* object);
// Stops at a dict or set whose class has an `__iter__` of its own: some C code uses that, some does not.
void refuse_own_iteration(Interpreter& interpreter, PyObject* container);

}  // namespace oxy::eval
