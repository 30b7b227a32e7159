// The exceptions that leave the recorder through PyTorch's dispatcher, and the Python classes they become.
#pragma once

#include <Python.h>
#include <torch/csrc/Exceptions.h>

#include <string>
#include <utility>

namespace oxy::trace {

// A recorded operator needs data that does not exist while tracing (`.item()`, bool(tensor), nonzero), or
// cannot be recorded. Becomes trace_error(), a subclass of BaseException: `except Exception` in the traced
// program leaves it.
class CannotTrace : public torch::PyTorchError {
 public:
  explicit CannotTrace(std::string reason) : torch::PyTorchError(std::move(reason)) {}
  PyObject* python_type() override;
};

// A bug of ours met while recording. Becomes internal_trace_error(), a subclass of trace_error().
class InternalTraceError final : public CannotTrace {
 public:
  using CannotTrace::CannotTrace;
  PyObject* python_type() override;
};

// The Python exception classes (borrowed, live for ever). Made by the first call, which needs the GIL.
PyObject* trace_error();
PyObject* internal_trace_error();

}  // namespace oxy::trace
