// A look at the Python error that is set.
#pragma once

#include <Python.h>

namespace oxy::eval {

// Takes the error (none: value() is null), normalises it, and sets it again when this object dies.
class PendingError {
 public:
  PendingError() {
    PyErr_Fetch(&type_, &value_, &traceback_);
    PyErr_NormalizeException(&type_, &value_, &traceback_);
  }
  ~PendingError() { PyErr_Restore(type_, value_, traceback_); }
  PendingError(const PendingError&) = delete;
  PendingError& operator=(const PendingError&) = delete;
  PyObject* value() const { return value_; }  // borrowed

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace oxy::eval
