// Python functions of torch's that run as they are: what they call by name stays what it is.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Guards what `function` (is_torch_function(), a Python function) and the functions of torch's that it calls
// find under the names of their code: in their globals, in the module torch, and in the class of tensors.
// Throws Break if some of it is the program's own.
void rely_on_definitions(Interpreter& interpreter, PyObject* function);

}  // namespace oxy::eval
