#include "trace/tensors/trace_error.h"
#include "trace/tensors/raising_function.h"

#include <torch/csrc/Exceptions.h>

#include <utility>

namespace oxy::trace {

namespace {

class CannotTrace : public torch::PyTorchError {
 public:
  explicit CannotTrace(std::string reason) : torch::PyTorchError(std::move(reason)) {}
  PyObject* python_type() override { return trace_error(); }
};

class InternalTraceError final : public CannotTrace {
 public:
  using CannotTrace::CannotTrace;
  PyObject* python_type() override { return internal_trace_error(); }
};

PyObject* make_class(const char* name, const char* doc, PyObject* base) {
  PyObject* result = PyErr_NewExceptionWithDoc(name, doc, base, nullptr);
  if (result == nullptr) throw python_error();
  return result;
}

}  // namespace

void throw_cannot_trace(std::string reason) {
  throw CannotTrace(std::move(reason));
}

void throw_internal_trace_error(std::string message) {
  throw InternalTraceError(std::move(message));
}

void throw_python_error() {
  throw python_error();
}

bool is_cannot_trace(const std::exception& error) {
  return dynamic_cast<const CannotTrace*>(&error) != nullptr;
}

bool is_internal_trace_error(const std::exception& error) {
  return dynamic_cast<const InternalTraceError*>(&error) != nullptr;
}

bool is_python_error(const std::exception& error) {
  return dynamic_cast<const python_error*>(&error) != nullptr ||
         dynamic_cast<const pybind11::error_already_set*>(&error) != nullptr;
}

std::string raising_function(const std::exception& error) {
  const pybind11::gil_scoped_acquire gil;
  PyObject* value = nullptr;
  if (const auto* raised = dynamic_cast<const python_error*>(&error)) value = raised->value;
  if (const auto* raised = dynamic_cast<const pybind11::error_already_set*>(&error))
    value = raised->value().ptr();
  PyObject* const traceback = value ? PyException_GetTraceback(value) : nullptr;
  if (!traceback) return "";
  auto* last = reinterpret_cast<PyTracebackObject*>(traceback);
  while (last->tb_next) last = last->tb_next;
  PyCodeObject* const code = PyFrame_GetCode(last->tb_frame);
  const char* name = PyUnicode_AsUTF8(code->co_name);
  std::string result = name ? name : "";
  Py_DECREF(code);
  Py_DECREF(traceback);
  return result;
}

PyObject* trace_error() {
  static PyObject* instance =
      make_class("oxyfuel.CannotTrace",
                 "The program needs data that does not exist while it is being traced.", PyExc_BaseException);
  return instance;
}

PyObject* internal_trace_error() {
  static PyObject* instance = make_class("oxyfuel.InternalTraceError",
                                         "A bug of oxyfuel, met while a program was traced.", trace_error());
  return instance;
}

}  // namespace oxy::trace
