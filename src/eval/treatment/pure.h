// C functions and classes whose result depends on plain arguments alone, and which have no effects.
#pragma once

#include <Python.h>

namespace oxy::eval {

// C functions that run for real on plain arguments (math, operator ...).
bool is_pure_builtin(PyObject* function);
// C types whose instances are made from plain arguments alone (range, slice, torch.Size, torch.device ...).
bool is_pure_type(PyTypeObject* type);

}  // namespace oxy::eval
