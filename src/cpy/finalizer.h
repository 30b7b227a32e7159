// Objects that run code when they are dropped.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// True if the object runs code when it ends: it has a finalizer, and is not a generator or coroutine that has
// ended.
bool has_finalizer(PyObject* object);

// True if weak references tell when the object ends.
bool has_weak_references(PyObject* object);

// Whether an item of a list, tuple or dict, or an attribute of an object of a Python class, has a finalizer.
// Of many it looks at some. False of classes and modules, which hold what others hold as well.
bool holds_finalizer(PyObject* object);

}  // namespace oxy::cpy
