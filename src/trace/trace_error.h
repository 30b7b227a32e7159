// What leaves the recorder through PyTorch's dispatcher, and the Python classes that it becomes. The C++
// classes are hidden in the one file that throws them, since their bases bring pybind11 with them, which
// costs 7 s a file.
#pragma once

#include <Python.h>

#include <exception>
#include <string>

namespace oxy::trace {

// A recorded operator needs data that does not exist while tracing (`.item()`, bool(tensor), nonzero), or
// cannot be recorded: throws CannotTrace. It becomes trace_error(), a subclass of BaseException: `except
// Exception` in the traced program leaves it.
[[noreturn]] void throw_cannot_trace(std::string reason);

// A bug of ours met while recording: throws InternalTraceError, a CannotTrace that becomes
// internal_trace_error().
[[noreturn]] void throw_internal_trace_error(std::string message);

// Throws the Python exception that is set, as PyTorch's python_error.
[[noreturn]] void throw_python_error();

bool is_cannot_trace(const std::exception& error);
bool is_internal_trace_error(const std::exception& error);
bool is_python_error(const std::exception& error);

// The Python exception classes (borrowed, live for ever). Made by the first call, which needs the GIL.
PyObject* trace_error();
PyObject* internal_trace_error();  // a subclass of trace_error()

}  // namespace oxy::trace
