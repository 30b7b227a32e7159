// Attributes of modules: entries of their dicts, unless a class or a __getattr__() of the module's own comes
// first.
#include "eval/evaluator.h"
#include "eval/objects.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::SourceId;

Ref Evaluator::module_attribute(PyObject* object, PyObject* name) {
  PyObject* dict = PyModule_GetDict(object);
  const SourceId source = guards().pinned(dict);
  PyTypeObject* const type = Py_TYPE(object);
  guards().require(source_of(pin(object).get()), CheckKind::Type, reinterpret_cast<PyObject*>(type));
  if (const Ref computed = type == &PyModule_Type ? Ref() : type_lookup(type, name);
      takes_writes(computed.get()))
    stop("reads an attribute that the class of a module computes");
  if (const Ref own = type_lookup(type, interned("__getattribute__").get()); PyFunction_Check(own.get()))
    stop("reads an attribute of a module whose class has a __getattribute__");
  if (auto written = attribute_effect(dict, name)) {
    if (*written) return *written;
    stop("reads an attribute of a module that it has deleted");
  }
  if (PyObject* value = PyDict_GetItemWithError(dict, name))
    return admit(value, guards().dict_item(source, name));
  const Ref asked = interned("__getattr__");
  // It may have effects, and is asked again if it keeps nothing.
  if (!_PyType_Lookup(type, name) && PyDict_GetItemWithError(dict, asked.get()))
    stop("asks a module's __getattr__()");
  Ref value = Ref::steal(PyObject_GetAttr(object, name));
  // A module that makes its attributes when they are asked for may keep them.
  if (PyObject* kept = value ? PyDict_GetItemWithError(dict, name) : nullptr)
    return admit(kept, guards().dict_item(source, name));
  guards().require(source, CheckKind::Absent, name);
  guards().require(source, CheckKind::Absent, asked.get());
  return value ? pin(value.get()) : Ref();
}

}  // namespace oxy::eval
