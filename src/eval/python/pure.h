// What computes from constants alone.
#pragma once

#include <Python.h>

namespace oxy::eval {

// C functions that compute from constants alone (math, operator ...): run for real on plain arguments.
bool is_pure_builtin(PyObject* function);
// Classes of C that are made from plain arguments alone (range, slice, torch.Size, torch.device ...).
bool is_pure_type(PyTypeObject* type);

}  // namespace oxy::eval
