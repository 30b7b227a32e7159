// Finds objects whose end a program can notice.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// Whether the object runs code when it dies: it has a finalizer, and is not a generator or coroutine that has
// ended.
bool has_finalizer(PyObject* object);

// Whether there are weak references to the object.
bool has_weak_references(PyObject* object);

// Whether an item of a list, tuple or dict, or an attribute of an object of a Python class, has a finalizer.
// Looks at a bounded number of items. False for classes and modules, whose contents others hold as well.
bool holds_finalizer(PyObject* object);

}  // namespace oxy::cpy
