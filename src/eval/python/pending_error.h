// The Python error that is set, taken to be looked at or changed.
#pragma once

#include <Python.h>

namespace oxy::eval {

// What is set, an error or none (value() is null), is set again when this dies.
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
