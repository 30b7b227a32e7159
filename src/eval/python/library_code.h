// Whether code is the program's own.
#pragma once

#include <Python.h>

namespace oxy::eval {

// Code of Python's own modules, PyTorch, NumPy or Oxyfuel, and what they generate (the methods of
// dataclasses).
bool is_library_code(PyCodeObject* code);

}  // namespace oxy::eval
