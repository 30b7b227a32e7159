// Calls of functions with graph breaks: their frames run segment by segment under the hook. This is the
// hook::SegmentRunner.
#pragma once

#include <Python.h>

#include <cstddef>
#include <memory>

namespace oxy::driver {

struct CallableOptions;

// Calls `callable` as PyObject_Vectorcall() does, with the hook active: frames of user code below it are
// captured segment by segment. The segments belong to options->segments.
PyObject* call_in_segments(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                           const std::shared_ptr<const CallableOptions>& options);
// `result`: what a compiled callable gives to its caller, or null. If it is a generator, coroutine or
// asynchronous generator, it is captured between its yields from now on. Returns `result`.
PyObject* run_in_segments(PyObject* result, const std::shared_ptr<const CallableOptions>& options);

}  // namespace oxy::driver
