// Look-ups along a class's method resolution order, with guards.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Guards that looking `name` up in the type gives `found` (null: nothing). Types of C code need no guard.
void guard_type_lookup(Interpreter& interpreter, PyTypeObject* type, PyObject* name, PyObject* found);
// Guards the type's method resolution order itself.
void guard_resolution_order(Interpreter& interpreter, PyTypeObject* type);
// Whether the special method `name` of the object's type is Python code, which has to be interpreted.
// Guarded. Stops at one that is neither a function nor callable.
bool has_python_special(Interpreter& interpreter, PyObject* object, const char* name);
// What the type, or a base of it, has under the name, unbound. Null, without an exception, if it has nothing.
Ref type_lookup(Interpreter& interpreter, PyTypeObject* type, PyObject* name);

}  // namespace oxy::eval
