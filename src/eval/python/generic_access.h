// The default attribute access: that of objects whose class has none of its own.
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

// Whether the str `name` is this ASCII text.
inline bool name_is(PyObject* name, const char* text) {
  return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

// Whether the first C method `name` in the type's resolution order is the function `generic`, which objects
// have by default. Methods in Python are skipped.
bool is_generic_below(PyTypeObject* type, const char* name, void* generic);

// Sets the AttributeError that CPython raises for an object that lacks the attribute. Returns null.
cpy::Ref attribute_error(PyObject* object, PyObject* name);

}  // namespace oxy::eval
