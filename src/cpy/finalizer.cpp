#include "cpy/finalizer.h"

#include "cpy/generator.h"
#include "cpy/object_dict.h"

namespace oxy::cpy {
namespace {

struct FinalizerSearch {
  PyObject* object;
  int left = 64;
};

// 1: found; -1: given up.
int look_for_finalizer(PyObject* found, void* data) {
  auto* search = static_cast<FinalizerSearch*>(data);
  if (search->left-- == 0) return -1;
  if (has_finalizer(found)) return 1;
  // The attributes are in a dict of their own once somebody has asked for it.
  const bool is_own_dict = PyDict_CheckExact(found) && existing_dict(search->object) == found;
  return is_own_dict ? PyDict_Type.tp_traverse(found, look_for_finalizer, data) : 0;
}

}  // namespace

bool has_finalizer(PyObject* object) {
  if (!Py_TYPE(object)->tp_finalize) return false;
  const bool generator =
      PyGen_CheckExact(object) || PyCoro_CheckExact(object) || PyAsyncGen_CheckExact(object);
  return !generator || !has_ended(object);
}

bool holds_finalizer(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  const bool is_container =
      PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyDict_CheckExact(object);
  const bool is_instance =
      PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_Check(object) && !PyModule_Check(object);
  if ((!is_container && !is_instance) || !type->tp_traverse) return false;
  FinalizerSearch search{object};
  return type->tp_traverse(object, look_for_finalizer, &search) == 1;
}

bool has_weak_references(PyObject* object) {
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) && *PyObject_GET_WEAKREFS_LISTPTR(object) != nullptr;
}

}  // namespace oxy::cpy
