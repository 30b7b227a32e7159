#include "eval/python/operator_objects.h"

#include "eval/python/objects.h"

namespace oxy::eval {

namespace {

bool is_instance_of(PyObject* object, const char* module, const char* name) {
  PyObject* type = well_known(module, name);
  return type && PyType_Check(type) && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type));
}

}  // namespace

bool is_custom_op(PyObject* callable) {
  return is_instance_of(callable, "torch._library.custom_ops", "CustomOpDef");
}

bool is_operator_packet(PyObject* callable) {
  return is_instance_of(callable, "torch._ops", "OpOverloadPacket");
}

bool is_operator_object(PyObject* callable) {
  return is_instance_of(callable, "torch._ops", "OpOverload") || is_operator_packet(callable) ||
         is_custom_op(callable);
}

}  // namespace oxy::eval
