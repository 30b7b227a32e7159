// Data that is kept with a code object and freed when the code object dies.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// A slot in every code object. Make one for each use, for the life of the process: CPython has 255 in all.
class CodeExtra {
 public:
  // `free` is called, with the GIL held, when a code object dies. It gets null if the code object has a value
  // in another slot only.
  explicit CodeExtra(void (*free)(void*));
  void* get(PyCodeObject* code) const;  // null if it has no value
  // Takes the value over and frees the old one. Throws std::bad_alloc.
  void set(PyCodeObject* code, void* value) const;

 private:
  Py_ssize_t index_;
};

}  // namespace oxy::cpy
