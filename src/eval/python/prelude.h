// Functions in Python that stand for others: for those of Python's C modules that call back, so that what
// they call is evaluated like the user's own code, and for some whose work is nothing inside of a region.
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

// The function that stands for a function or class; null if there is none.
cpy::Ref python_form(PyObject* callable);
// One by its name in the text of prelude.cpp.
cpy::Ref prelude_function(const char* name);

// Whether code is of a function of the prelude.
bool is_prelude_code(PyCodeObject* code);

}  // namespace oxy::eval
