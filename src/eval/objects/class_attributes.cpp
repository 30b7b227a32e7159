// Attributes of classes, and of aliases such as list[int], which stand for a class in an annotation.
#include "eval/objects/class_attributes.h"

#include <fmt/format.h>

#include "eval/externals/admission.h"
#include "eval/externals/type_lookup.h"
#include "eval/objects/attributes.h"
#include "eval/python/generic_access.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {
namespace {

// Whether a class keeps the attribute outside of its __dict__, and a program can replace it.
bool is_field_of_classes(PyObject* name) {
  return name_is(name, "__name__") || name_is(name, "__qualname__") || name_is(name, "__bases__");
}

}  // namespace

bool finds_attributes_itself(Interpreter& interpreter, PyObject* class_object) {
  return has_python_special(interpreter, class_object, "__getattribute__") ||
         has_python_special(interpreter, class_object, "__getattr__");
}

Ref class_attribute(Interpreter& interpreter, PyObject* object, PyObject* name) {
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  PyTypeObject* const metaclass = Py_TYPE(object);
  Ref found = type_lookup(interpreter, type, name);
  Ref meta = type_lookup(interpreter, metaclass, name);
  const bool overrides = takes_writes(interpreter, meta.get());
  if (!is_enum_class(object)) {
    const auto is_python_code = [&](PyTypeObject* of, const char* method) {
      Ref function = type_lookup(interpreter, of, interned(method).get());
      if (!function || is_of_c(function.get())) return false;
      if (!PyFunction_Check(function.get()))
        interpreter.stop(
            fmt::format("asks an object whose {} is of type {}", method, Py_TYPE(function.get())->tp_name));
      return true;
    };
    if (is_python_code(metaclass, "__getattribute__"))
      interpreter.stop("reads an attribute of a class whose metaclass has a __getattribute__");
    const bool computes =
        meta && (Py_TYPE(meta.get()) == &PyProperty_Type || is_python_code(Py_TYPE(meta.get()), "__get__"));
    const bool has_fallback = is_python_code(metaclass, "__getattr__");
    const auto call_fallback = [&] {
      return call_positional(interpreter,
                             type_lookup(interpreter, metaclass, interned("__getattr__").get()).get(),
                             {Ref::borrow(object), Ref::borrow(name)});
    };
    const auto or_fallback = [&](Ref value) {
      if (value || !has_fallback || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
      PyErr_Clear();
      return call_fallback();
    };
    if (computes && (overrides || !found))
      return or_fallback(bind_descriptor(interpreter, meta.get(), object, metaclass));
    if (found && !overrides && !is_enum_member(found.get()))
      return or_fallback(bind_descriptor(interpreter, found.get(), nullptr, type));
    if (!found && !meta && has_fallback) return call_fallback();
  }
  if (name_is(name, "__mro__") || name_is(name, "__base__")) guard_resolution_order(interpreter, type);
  if (meta && is_field_of_classes(name) && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    return read_field(interpreter, object, meta.get());
  if (name_is(name, "__dict__") && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    interpreter.stop("looks into the __dict__ of a class");
  Ref value = Ref::steal(PyObject_GetAttr(object, name));
  if (!value) return {};
  if (PyMethod_Check(value.get())) {
    pin(interpreter, PyMethod_GET_FUNCTION(value.get()));
    return value;
  }
  if (name_is(name, "__dict__")) return value;  // a fresh mappingproxy
  return PyCFunction_Check(value.get()) ? value : pin(interpreter, value.get());
}

Ref alias_attribute(Interpreter& interpreter, PyObject* object, PyObject* name) {
  if (!name_is(name, "__args__") && !name_is(name, "__origin__") && !name_is(name, "__parameters__"))
    interpreter.stop(fmt::format("reads an attribute of a {}, which C code finds", Py_TYPE(object)->tp_name));
  const Ref value = Ref::steal(PyObject_GetAttr(object, name));
  return value ? pin(interpreter, value.get()) : Ref();
}

}  // namespace oxy::eval
