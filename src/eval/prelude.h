// Functions of Python's C modules that call back, in Python: evaluated like the user's own code, so that what
// they call is too.
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

// The function that stands for a C function or class; null if there is none.
cpy::Ref python_form(PyObject* callable);
// One by its name in the text of prelude.cpp.
cpy::Ref prelude_function(const char* name);

// Whether code is of a function of the prelude.
bool is_prelude_code(PyCodeObject* code);

}  // namespace oxy::eval
