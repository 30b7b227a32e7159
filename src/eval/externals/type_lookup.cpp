#include "eval/externals/type_lookup.h"

#include <fmt/format.h>

#include "eval/python/objects.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

Ref type_lookup(Interpreter& interpreter, PyTypeObject* type, PyObject* name) {
  Ref found = Ref::borrow(_PyType_Lookup(type, name));
  guard_type_lookup(interpreter, type, name, found.get());
  return found;
}

bool has_python_special(Interpreter& interpreter, PyObject* object, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  Ref found = type_lookup(interpreter, type, interned(name).get());
  // None as a special method is an error, with another text for each operation. None as __hash__ is usual.
  if (found.get() == Py_None && std::string_view(name) != "__hash__")
    interpreter.stop(fmt::format("asks an object whose class has {} = None", name));
  if (!found || is_of_c(found.get())) return false;
  const bool is_called = PyFunction_Check(found.get()) || Py_TYPE(found.get()) == &PyClassMethod_Type ||
                         Py_TYPE(found.get()) == &PyStaticMethod_Type ||
                         (PyType_HasFeature(Py_TYPE(found.get()), Py_TPFLAGS_HEAPTYPE) &&
                          Py_TYPE(found.get())->tp_call && !PyType_Check(found.get()));
  if (!is_called)
    interpreter.stop(
        fmt::format("asks an object whose {} is of type {}", name, Py_TYPE(found.get())->tp_name));
  return true;
}

void guard_type_lookup(Interpreter& interpreter, PyTypeObject* type, PyObject* name, PyObject* found) {
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    interpreter.guards().require_type_lookup(type, name, found);
}

void guard_resolution_order(Interpreter& interpreter, PyTypeObject* type) {
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) interpreter.guards().require_resolution_order(type);
}

}  // namespace oxy::eval
