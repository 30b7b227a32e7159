// What leaves the recorder through PyTorch's dispatcher, and the Python classes that it becomes.
#pragma once

#include <Python.h>

#include <string>

namespace oxy::trace {

// A recorded operator needs data that does not exist while tracing (`.item()`, bool(tensor), nonzero), or
// cannot be recorded: throws CannotTrace (trace_exceptions.h).
[[noreturn]] void throw_cannot_trace(std::string reason);

// A bug of ours met while recording: throws InternalTraceError.
[[noreturn]] void throw_internal_trace_error(std::string message);

// Throws the Python exception that is set, as PyTorch's python_error.
[[noreturn]] void throw_python_error();

// The Python exception classes (borrowed, live for ever). Made by the first call, which needs the GIL.
PyObject* trace_error();
PyObject* internal_trace_error();

}  // namespace oxy::trace
