// What classes have under a name, guarded.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

void guard_type_lookup(Interpreter& interpreter, PyTypeObject* type, PyObject* name, PyObject* found);
void guard_resolution_order(Interpreter& interpreter, PyTypeObject* type);
// True if the type's special method `name` is a Python function (or other non-C object), to be evaluated.
bool has_python_special(Interpreter& interpreter, PyObject* object, const char* name);
// guarded; null if absent, no exception
Ref type_lookup(Interpreter& interpreter, PyTypeObject* type, PyObject* name);

}  // namespace oxy::eval
