// The stand-in for the traceback of an exception that is caught in a captured region.
#pragma once

#include <Python.h>

namespace oxy::eval {

// There are no frames that a traceback could show, so the stand-in can only be passed on. Borrowed, lives for
// ever; null with an error set if it cannot be made.
PyObject* unknown_traceback();
bool is_unknown_traceback(PyObject* object);

}  // namespace oxy::eval
