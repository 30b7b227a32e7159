// Functions with breaks: their frames run segment by segment under the hook.
#pragma once

#include <Python.h>

#include <cstddef>
#include <memory>

namespace oxy::driver {

struct CallableOptions;

// Calls `callable` with the hook active: the frames of user code below it are captured segment by segment.
PyObject* call_in_segments(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                           const std::shared_ptr<const CallableOptions>& options);
// A generator, coroutine or asynchronous generator that a compiled callable gives to its caller is captured
// between its yields from now on. Returns what it is given.
PyObject* run_in_segments(PyObject* result, const std::shared_ptr<const CallableOptions>& options);

}  // namespace oxy::driver
