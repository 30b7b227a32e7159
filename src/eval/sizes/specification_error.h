// Errors in what the user says of sizes.
#pragma once

#include <Python.h>

#include <string>

#include "eval/state/break.h"

namespace oxy::eval {

// The user is told by a Python exception of this class; what follows is not tried in eager.
[[noreturn]] inline void raise_specification(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw Interrupted{};
}

}  // namespace oxy::eval
