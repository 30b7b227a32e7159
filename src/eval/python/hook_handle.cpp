#include "eval/python/hook_handle.h"

namespace oxy::eval {
namespace {

PyTypeObject* handle_type() {
  static PyObject* type = nullptr;
  cpy::made_once(type, [] {
    static PyType_Slot slots[] = {{0, nullptr}};
    static PyType_Spec spec = {"oxyfuel.HookHandle", sizeof(PyObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return PyType_FromSpec(&spec);
  });
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

cpy::Ref new_hook_handle() {
  PyTypeObject* type = handle_type();
  return cpy::Ref::steal(type->tp_alloc(type, 0));
}

bool is_hook_handle(PyObject* object) {
  return object != nullptr && Py_TYPE(object) == handle_type();
}

}  // namespace oxy::eval
