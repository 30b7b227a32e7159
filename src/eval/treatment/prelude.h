// The prelude: Python functions of ours that take the place of others in a captured region. Most stand for C
// functions that call back or iterate (map, filter, itertools.accumulate, operator.iadd ...), so that code
// which they call is inlined like the program's own. Some stand for functions that have nothing to do inside
// of a region.
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

// The function of the prelude for a function or class; null, without an error, if there is none.
cpy::Ref python_form(PyObject* callable);
// A function of the prelude by its name in prelude.cpp. Precondition: there is one.
cpy::Ref prelude_function(const char* name);

// Whether the code belongs to a function of the prelude.
bool is_prelude_code(PyCodeObject* code);

}  // namespace oxy::eval
