// Attributes of modules of Python.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// module_attributes.cpp
Ref module_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);

}  // namespace oxy::eval
