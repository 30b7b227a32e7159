#include "cpy/finalizer.h"

#include "cpy/generator.h"

namespace oxy::cpy {

bool has_finalizer(PyObject* object) {
  if (!Py_TYPE(object)->tp_finalize) return false;
  const bool generator =
      PyGen_CheckExact(object) || PyCoro_CheckExact(object) || PyAsyncGen_CheckExact(object);
  return !generator || !has_ended(object);
}

bool has_weak_references(PyObject* object) {
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) && *PyObject_GET_WEAKREFS_LISTPTR(object) != nullptr;
}

}  // namespace oxy::cpy
