// Attributes of modules of Python.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// module.name: an entry of the module's dict, or what its class or its `__getattr__()` gives.
Ref module_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);

}  // namespace oxy::eval
