#include "eval/python/traceback.h"

#include "cpy/ref.h"

namespace oxy::eval {

PyObject* unknown_traceback() {
  static PyObject* object = nullptr;
  return cpy::made_once(object, []() -> PyObject* {
    static PyType_Slot slots[] = {{0, nullptr}};
    static PyType_Spec spec = {"oxyfuel.traceback", sizeof(PyObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return type ? type->tp_alloc(type, 0) : nullptr;
  });
}

bool is_unknown_traceback(PyObject* object) {
  return object != nullptr && object == unknown_traceback();
}

}  // namespace oxy::eval
