// oxyfuel._core.CompiledFunction: the Python object around a driver::CompiledCallable.
#pragma once

#include <Python.h>

#include "driver/calls/compiled_callable.h"

namespace oxy::pybind {

// The type (borrowed; made at the first call), or null with an exception set.
PyTypeObject* callable_type();
// A new CompiledFunction for `target`.
PyObject* make_callable(PyObject* target, const driver::CallableOptions& options);
// The callable behind a CompiledFunction, nullptr for any other object.
driver::CompiledCallable* unwrap_callable(PyObject* object);

}  // namespace oxy::pybind
