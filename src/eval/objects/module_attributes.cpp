// Attributes of modules: entries of their dicts, unless a class or a __getattr__() of the module's own comes
// first.
#include "eval/objects/module_attributes.h"

#include "eval/externals/admission.h"
#include "eval/externals/effects.h"
#include "eval/externals/type_lookup.h"
#include "eval/objects/attributes.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::SourceId;

Ref module_attribute(Interpreter& interpreter, PyObject* object, PyObject* name) {
  PyObject* dict = PyModule_GetDict(object);
  const SourceId source = interpreter.guards().pinned(dict);
  PyTypeObject* const type = Py_TYPE(object);
  interpreter.guards().require(interpreter.externals.source_of(pin(interpreter, object).get()),
                               CheckKind::Type, reinterpret_cast<PyObject*>(type));
  if (const Ref computed = type == &PyModule_Type ? Ref() : type_lookup(interpreter, type, name);
      takes_writes(interpreter, computed.get()))
    interpreter.stop("reads an attribute that the class of a module computes");
  if (const Ref own = type_lookup(interpreter, type, interned("__getattribute__").get());
      PyFunction_Check(own.get()))
    interpreter.stop("reads an attribute of a module whose class has a __getattribute__");
  if (auto written = attribute_effect(interpreter, dict, name)) {
    if (*written) return *written;
    interpreter.stop("reads an attribute of a module that it has deleted");
  }
  if (PyObject* value = PyDict_GetItemWithError(dict, name))
    return admit(interpreter, value, interpreter.guards().dict_item(source, name));
  const Ref asked = interned("__getattr__");
  // A `__getattr__` may have effects, and is called again for a name that it does not store.
  if (!_PyType_Lookup(type, name) && PyDict_GetItemWithError(dict, asked.get()))
    interpreter.stop("asks a module's __getattr__()");
  Ref value = Ref::steal(PyObject_GetAttr(object, name));
  // A module that makes attributes on demand may store them.
  if (PyObject* kept = value ? PyDict_GetItemWithError(dict, name) : nullptr)
    return admit(interpreter, kept, interpreter.guards().dict_item(source, name));
  interpreter.guards().require(source, CheckKind::Absent, name);
  interpreter.guards().require(source, CheckKind::Absent, asked.get());
  return value ? pin(interpreter, value.get()) : Ref();
}

}  // namespace oxy::eval
