// Whether code is the program's own.
#pragma once

#include <Python.h>

#include <string_view>

namespace oxy::eval {

// Code of Python's own modules, PyTorch, NumPy or Oxyfuel, and what they generate (the methods of
// dataclasses).
bool is_library_code(PyCodeObject* code);

// The text of a str; empty for anything else. Valid as long as the object.
std::string_view text_of_str(PyObject* str);

}  // namespace oxy::eval
