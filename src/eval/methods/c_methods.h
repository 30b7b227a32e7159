// Methods of objects of C types.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Ref call_getter(Interpreter& interpreter, PyObject* getter, PyObject* object);

}  // namespace oxy::eval
