// Tracebacks of exceptions that are caught while capturing.
#pragma once

#include <Python.h>

namespace oxy::eval {

// Stands for the traceback of an exception that was raised in evaluated code: nothing may be done with it
// besides passing it on, as there are no frames that it could show. Borrowed, lives forever; null with an
// error set if it cannot be made.
PyObject* unknown_traceback();
bool is_unknown_traceback(PyObject* object);

}  // namespace oxy::eval
