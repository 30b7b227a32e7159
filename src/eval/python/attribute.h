// Attributes of any object, read as Python does.
#pragma once

#include "cpy/ref.h"

namespace oxy::eval {

// Null where the object has no such attribute, or reading it raises. No exception stays set.
inline cpy::Ref attribute_or_null(PyObject* object, const char* name) {
  cpy::Ref value = cpy::Ref::steal(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value;
}

}  // namespace oxy::eval
