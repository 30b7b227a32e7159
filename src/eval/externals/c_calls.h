// C code that is called for real.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// arguments as they are, no checks
Ref call_real(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);
Ref call_real_plain(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);
// A ufunc of numpy's, called with constants and numbers of numpy's. Nothing: another function or other
// arguments.
std::optional<Ref> call_on_scalars(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
