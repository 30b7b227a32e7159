// Objects that run code when they are dropped.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// True if the object's end may be seen: there are weak references to it, or it has a finalizer and is not a
// generator or coroutine that has ended.
bool has_finalizer(PyObject* object);

}  // namespace oxy::cpy
