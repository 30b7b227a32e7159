// isinstance() and issubclass().
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// what the program sees as its class
PyTypeObject* class_seen(Interpreter& interpreter, PyObject* object);
// isinstance(); -1: exception set
int instance_of(Interpreter& interpreter, PyObject* object, PyObject* classes);
// issubclass(); -1: exception set
int subclass_of(Interpreter& interpreter, PyObject* type, PyObject* classes);

}  // namespace oxy::eval
