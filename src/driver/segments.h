// Functions with breaks: their frames run segment by segment under the hook.
#pragma once

#include <Python.h>

#include <cstddef>

namespace oxy::driver {

struct CallableOptions;

// Calls `callable` with the hook active: the frames of user code below it are captured segment by segment.
PyObject* call_in_segments(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                           const CallableOptions& options);
void reset_segments();

}  // namespace oxy::driver
