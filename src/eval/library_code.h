// Whether code is the program's own.
#pragma once

#include <Python.h>

namespace oxy::eval {

// Code of Python's own modules, PyTorch, NumPy or Oxyfuel, and what they generate (the methods of
// dataclasses).
bool is_library_code(PyCodeObject* code);

// While one lives, this thread runs code of the program's own as part of what it captures: what
// allow_in_graph() marks.
class PartOfCapture {
 public:
  PartOfCapture();
  ~PartOfCapture();
  PartOfCapture(const PartOfCapture&) = delete;
  PartOfCapture& operator=(const PartOfCapture&) = delete;
  static bool is_under_way();
};

}  // namespace oxy::eval
