// What objects do that say nothing about how their attributes are found and kept.
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

inline bool name_is(PyObject* name, const char* text) {
  return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

// Whether the C code behind `name`, a special method that the type or a base of it may replace by Python's,
// is what objects have that say nothing about it.
bool is_generic_below(PyTypeObject* type, const char* name, void* generic);

// Sets the AttributeError of an object that lacks the attribute. Returns null.
cpy::Ref attribute_error(PyObject* object, PyObject* name);

}  // namespace oxy::eval
