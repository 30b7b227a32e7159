#include "cpy/finalizer.h"

#include "cpy/generator.h"

namespace oxy::cpy {

bool has_finalizer(PyObject* object) {
  if (!Py_TYPE(object)->tp_finalize) return false;
  const bool generator =
      PyGen_CheckExact(object) || PyCoro_CheckExact(object) || PyAsyncGen_CheckExact(object);
  return !generator || !has_ended(object);
}

}  // namespace oxy::cpy
