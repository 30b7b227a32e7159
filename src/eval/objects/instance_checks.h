// isinstance() and issubclass().
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The class that the program sees (borrowed): that of what a trace tensor, varying number or generator of
// ours stands for.
PyTypeObject* class_seen(Interpreter& interpreter, PyObject* object);
// isinstance(object, classes): 1, 0, or -1 with an exception set.
int instance_of(Interpreter& interpreter, PyObject* object, PyObject* classes);
// issubclass(type, classes), likewise.
int subclass_of(Interpreter& interpreter, PyObject* type, PyObject* classes);

}  // namespace oxy::eval
