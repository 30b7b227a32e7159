// Guards on what Python functions of torch's call by name. They run for real, and a program may have replaced
// what they call.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `function`: a Python function of torch's (is_torch_function()). Guards what it and the functions of torch's
// that it calls find under the names in their code: in their globals, in the module torch, and in the class
// of tensors. Stops if some of that is the program's own.
void rely_on_definitions(Interpreter& interpreter, PyObject* function);

}  // namespace oxy::eval
