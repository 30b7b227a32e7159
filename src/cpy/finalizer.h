// Objects that run code when they are dropped.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// True if the object runs code when it ends: it has a finalizer, and is not a generator or coroutine that has
// ended.
bool has_finalizer(PyObject* object);

// True if weak references tell when the object ends.
bool has_weak_references(PyObject* object);

}  // namespace oxy::cpy
