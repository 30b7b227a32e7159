// What a compiler keeps with a code object, freed when the code object dies.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// A slot in every code object. Make one per use, once, for the life of the process: CPython has 255 in all.
class CodeExtra {
 public:
  // `free` is called with the GIL held when a code object dies; with null if it had no value here but in
  // another slot.
  explicit CodeExtra(void (*free)(void*));
  void* get(PyCodeObject* code) const;  // null: none
  // Frees the value it replaces. Throws std::bad_alloc.
  void set(PyCodeObject* code, void* value) const;

 private:
  Py_ssize_t index_;
};

}  // namespace oxy::cpy
