// Writes and deletions of attributes, as CPython resolves them. Those of external objects are effects.
#include "eval/objects/attribute_writes.h"

#include <fmt/format.h>
#include <structmember.h>

#include "base/error.h"
#include "cpy/object_dict.h"
#include "eval/externals/admission.h"
#include "eval/externals/effects.h"
#include "eval/externals/type_lookup.h"
#include "eval/objects/attributes.h"
#include "eval/objects/containers.h"
#include "eval/python/generic_access.h"
#include "eval/python/objects.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

using guards::CheckKind;

bool generic_set_attribute(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value) {
  if (PyType_Check(object)) interpreter.stop("sets an attribute of a class");
  PyTypeObject* type = Py_TYPE(object);
  if (!is_generic_below(type, "__setattr__", reinterpret_cast<void*>(PyObject_GenericSetAttr)))
    interpreter.stop(fmt::format("sets an attribute of a {}, which C code keeps", type->tp_name));
  Ref descriptor = type_lookup(interpreter, type, name);
  if (takes_writes(interpreter, descriptor.get())) {
    PyTypeObject* kind = Py_TYPE(descriptor.get());
    if (kind == &PyProperty_Type) {
      Ref setter = Ref::steal(PyObject_GetAttrString(descriptor.get(), value ? "fset" : "fdel"));
      if (!setter || setter == Py_None) {
        PyErr_Format(PyExc_AttributeError, "property '%U' of '%.100s' object has no %s", name, type->tp_name,
                     value ? "setter" : "deleter");
        return false;
      }
      pin(interpreter, setter.get());
      std::vector<Ref> args;
      args.push_back(Ref::borrow(object));
      if (value) args.push_back(Ref::borrow(value));
      return static_cast<bool>(call_positional(interpreter, setter.get(), std::move(args)));
    }
    if (interpreter.externals.is_external(object) && kind == &PyMemberDescr_Type) {
      const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(descriptor.get())->d_member;
      if (member->type != T_OBJECT_EX || (member->flags & READONLY))
        interpreter.stop(fmt::format("sets attribute {} through a descriptor", PyUnicode_AsUTF8(name)));
      if (is_container(object)) interpreter.stop("sets a slot of a container");
      if (!value && !bind_descriptor(interpreter, descriptor.get(), object, type)) {
        PyErr_SetObject(PyExc_AttributeError, name);
        return false;
      }
      record_attribute_effect(interpreter, object, name, value);
      return true;
    }
    Ref set = type_lookup(interpreter, kind, interned(value ? "__set__" : "__delete__").get());
    if (set && PyFunction_Check(set.get())) {
      std::vector<Ref> args;
      args.push_back(pin(interpreter, descriptor.get()));
      args.push_back(Ref::borrow(object));
      if (value) args.push_back(Ref::borrow(value));
      return static_cast<bool>(call_positional(interpreter, set.get(), std::move(args)));
    }
    if (name_is(name, "__dict__")) interpreter.stop("replaces the __dict__ of an object");
    if (interpreter.externals.is_external(object) || !is_of_c(descriptor.get()))
      interpreter.stop(fmt::format("sets attribute {} through a descriptor", PyUnicode_AsUTF8(name)));
    return PyObject_GenericSetAttr(object, name, value) == 0;
  }
  if (!interpreter.externals.is_external(object)) return PyObject_GenericSetAttr(object, name, value) == 0;
  PyObject* dict = cpy::materialized_dict(object);
  // An object without a dict refuses the write, with a text that differs between versions of Python.
  if (!dict) {
    check(PyObject_GenericSetAttr(object, name, value) < 0, "an object without a dict takes an attribute");
    return false;
  }
  if (!PyDict_CheckExact(dict))
    interpreter.stop("sets an attribute of an object whose __dict__ is of another class");
  instance_dict_source(interpreter, object);
  if (!value && !has_entry(interpreter, dict, name)) {
    attribute_error(object, name);
    return false;
  }
  record_attribute_effect(interpreter, dict, name, value);
  return true;
}

bool has_entry(Interpreter& interpreter, PyObject* dict, PyObject* name) {
  if (auto written = attribute_effect(interpreter, dict, name)) return static_cast<bool>(*written);
  const SourceId source = interpreter.externals.source_of(dict);
  if (PyDict_GetItemWithError(dict, name)) {
    admit_presence(interpreter, interpreter.guards().dict_item(source, name));
    return true;
  }
  interpreter.guards().require(source, CheckKind::Absent, name);
  return false;
}

bool set_attribute(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value) {
  if (trace::is_trace_tensor(object)) {
    if (value && name_is(name, "grad")) return set_gradient(interpreter, object, value);
    interpreter.stop(fmt::format("sets attribute {} of a tensor", PyUnicode_AsUTF8(name)));
  }
  if (PyType_Check(object)) interpreter.stop("sets an attribute of a class");
  if (PyExceptionInstance_Check(object) && name_is(name, "__traceback__")) {
    // The stand-in for a traceback stands for that of any exception, as nothing can look into it.
    if (value && is_unknown_traceback(value) && interpreter.calls.raised.contains(object)) return true;
    interpreter.stop("replaces a traceback");
  }
  if (PyModule_Check(object)) {
    pin(interpreter, object);
    PyObject* dict = PyModule_GetDict(object);
    interpreter.externals.sources.emplace(dict, interpreter.guards().pinned(dict));
    if (!value && !has_entry(interpreter, dict, name))
      interpreter.stop("deletes an attribute that a module lacks");
    record_attribute_effect(interpreter, dict, name, value);
    return true;
  }
  PyTypeObject* type = Py_TYPE(object);
  Ref setter = type_lookup(interpreter, type, interned(value ? "__setattr__" : "__delattr__").get());
  if (setter.get() == Py_None)
    interpreter.stop(
        fmt::format("asks an object whose class has {} = None", value ? "__setattr__" : "__delattr__"));
  if (setter && PyFunction_Check(setter.get())) {
    PyObject* module_class = well_known("torch.nn", "Module");
    // Whether the class overrides a method of nn.Module that Module.__setattr__ calls.
    const auto is_own = [&](const char* asked) {
      return is_overridden(type, reinterpret_cast<PyTypeObject*>(module_class), asked);
    };
    if (module_class && !is_own("__getattribute__") && !is_own("register_parameter") &&
        setter == _PyType_Lookup(reinterpret_cast<PyTypeObject*>(module_class),
                                 interned(value ? "__setattr__" : "__delattr__").get())) {
      if (!interpreter.externals.is_external(object)) return PyObject_SetAttr(object, name, value) == 0;
      const bool special =
          value &&
          (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(well_known("torch.nn", "Parameter"))) ||
           PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(module_class)));
      if (special) interpreter.stop("assigns a parameter or a module to an attribute of a module");
      for (const char* group : {"_parameters", "_buffers", "_modules"}) {
        Ref dict = generic_get_attribute(interpreter, object, interned(group).get());
        const int found = dict ? contains(interpreter, dict.get(), name) : 0;
        if (found > 0) {
          if (value && get_item(interpreter, dict.get(), name) == value)
            return true;  // `self.count += 1` writes the same object back
          interpreter.stop("replaces a parameter, buffer or submodule");
        }
        PyErr_Clear();
      }
      return generic_set_attribute(interpreter, object, name, value);
    }
    pin(interpreter, setter.get());
    std::vector<Ref> args;
    args.push_back(Ref::borrow(object));
    args.push_back(Ref::borrow(name));
    if (value) args.push_back(Ref::borrow(value));
    return static_cast<bool>(call_positional(interpreter, setter.get(), std::move(args)));
  }
  if (setter && !is_of_c(setter.get()))
    interpreter.stop(fmt::format("sets an attribute of an object whose setter is of type {}",
                                 Py_TYPE(setter.get())->tp_name));
  if (PyFunction_Check(object) && interpreter.externals.is_external(object))
    interpreter.stop("sets an attribute of a function");
  return generic_set_attribute(interpreter, object, name, value);
}

}  // namespace oxy::eval
