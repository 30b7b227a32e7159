#include "cpy/object_dict.h"

namespace oxy::cpy {

PyObject* materialized_dict(PyObject* object) {
  if (PyObject* dict = existing_dict(object)) return dict;
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);
  if (!dict) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(dict);  // the object holds it
  return dict;
}

}  // namespace oxy::cpy
