// Methods of objects of C types. evaluation.h declares call_c_method().
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Calls an operator.itemgetter or attrgetter on an object.
Ref call_getter(Interpreter& interpreter, PyObject* getter, PyObject* object);

}  // namespace oxy::eval
