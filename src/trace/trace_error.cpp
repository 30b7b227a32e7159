#include "trace/trace_error.h"

#include "trace/trace_exceptions.h"

namespace oxy::trace {

namespace {

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

PyObject* CannotTrace::python_type() {
  return trace_error();
}
PyObject* InternalTraceError::python_type() {
  return internal_trace_error();
}

}  // namespace oxy::trace
