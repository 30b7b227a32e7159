// The C++ exceptions that trace_error.h throws, for those that catch them: their base class brings pybind11.
#pragma once

#include <torch/csrc/Exceptions.h>

#include <string>
#include <utility>

namespace oxy::trace {

// Becomes trace_error(), a subclass of BaseException: `except Exception` in the traced program leaves it.
class CannotTrace : public torch::PyTorchError {
 public:
  explicit CannotTrace(std::string reason) : torch::PyTorchError(std::move(reason)) {}
  PyObject* python_type() override;
};

// Becomes internal_trace_error(), a subclass of trace_error().
class InternalTraceError final : public CannotTrace {
 public:
  using CannotTrace::CannotTrace;
  PyObject* python_type() override;
};

}  // namespace oxy::trace
