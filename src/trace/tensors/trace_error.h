// The exceptions that leave the recorder through PyTorch's dispatcher, and the Python classes that they
// become. The C++ classes are hidden in trace_error.cpp, since their bases include pybind11, which costs 7 s
// a file.
#pragma once

#include <Python.h>

#include <exception>
#include <string>

namespace oxy::trace {

// Throws CannotTrace: an operator needs data that a trace tensor does not have (`.item()`, bool(tensor),
// nonzero), or cannot be recorded. In Python it becomes trace_error(), a subclass of BaseException, so that
// an `except Exception` of the program does not catch it.
[[noreturn]] void throw_cannot_trace(std::string reason);

// Throws InternalTraceError, for a bug of ours that is met while recording. It is a CannotTrace and becomes
// internal_trace_error().
[[noreturn]] void throw_internal_trace_error(std::string message);

// Throws the Python exception that is set as PyTorch's python_error.
[[noreturn]] void throw_python_error();

bool is_cannot_trace(const std::exception& error);
bool is_internal_trace_error(const std::exception& error);
// One raised in Python, as PyTorch throws it or as pybind11 does for PyTorch's kernels that are written in
// Python.
bool is_python_error(const std::exception& error);

// The Python exception classes: borrowed, live for ever. Made at the first call, which needs the GIL.
PyObject* trace_error();
PyObject* internal_trace_error();  // a subclass of trace_error()

}  // namespace oxy::trace
