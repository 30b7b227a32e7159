// Tells code of libraries from the program's own.
#pragma once

#include <Python.h>

namespace oxy::eval {

// Code of Python's standard library, PyTorch, NumPy or Oxyfuel, or code that these generate (the methods of
// dataclasses).
bool is_library_code(PyCodeObject* code);

}  // namespace oxy::eval
