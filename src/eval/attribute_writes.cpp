// Attributes that are written and deleted, as CPython does it: effects on what existed before the call.
#include <fmt/format.h>
#include <structmember.h>

#include "base/error.h"
#include "cpy/object_dict.h"
#include "eval/evaluator.h"
#include "eval/generic_access.h"
#include "eval/objects.h"
#include "eval/traceback.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::kNoSource;
using guards::SourceKind;

bool Evaluator::generic_set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  if (PyType_Check(object)) stop("sets an attribute of a class");
  PyTypeObject* type = Py_TYPE(object);
  if (!is_generic_below(type, "__setattr__", reinterpret_cast<void*>(PyObject_GenericSetAttr)))
    stop(fmt::format("sets an attribute of a {}, which C code keeps", type->tp_name));
  Ref descriptor = type_lookup(type, name);
  if (takes_writes(descriptor.get())) {
    PyTypeObject* kind = Py_TYPE(descriptor.get());
    if (kind == &PyProperty_Type) {
      Ref setter = Ref::steal(PyObject_GetAttrString(descriptor.get(), value ? "fset" : "fdel"));
      if (!setter || setter == Py_None) {
        PyErr_Format(PyExc_AttributeError, "property '%U' of '%.100s' object has no %s", name, type->tp_name,
                     value ? "setter" : "deleter");
        return false;
      }
      pin(setter.get());
      std::vector<Ref> args;
      args.push_back(Ref::borrow(object));
      if (value) args.push_back(Ref::borrow(value));
      return static_cast<bool>(call_positional(setter.get(), std::move(args)));
    }
    if (is_external(object) && kind == &PyMemberDescr_Type) {
      const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(descriptor.get())->d_member;
      if (member->type != T_OBJECT_EX || (member->flags & READONLY))
        stop(fmt::format("sets attribute {} through a descriptor", PyUnicode_AsUTF8(name)));
      if (is_container(object)) stop("sets a slot of a container");
      if (!value && !bind_descriptor(descriptor.get(), object, type)) {
        PyErr_SetObject(PyExc_AttributeError, name);
        return false;
      }
      record_attribute_effect(object, name, value);
      return true;
    }
    Ref set = type_lookup(kind, interned(value ? "__set__" : "__delete__").get());
    if (set && PyFunction_Check(set.get())) {
      std::vector<Ref> args;
      args.push_back(pin(descriptor.get()));
      args.push_back(Ref::borrow(object));
      if (value) args.push_back(Ref::borrow(value));
      return static_cast<bool>(call_positional(set.get(), std::move(args)));
    }
    if (name_is(name, "__dict__")) stop("replaces the __dict__ of an object");
    if (is_external(object) || !is_of_c(descriptor.get()))
      stop(fmt::format("sets attribute {} through a descriptor", PyUnicode_AsUTF8(name)));
    return PyObject_GenericSetAttr(object, name, value) == 0;
  }
  if (!is_external(object)) return PyObject_GenericSetAttr(object, name, value) == 0;
  PyObject* dict = cpy::materialized_dict(object);
  // Without a dict it is refused, in words that differ between versions of Python.
  if (!dict) {
    check(PyObject_GenericSetAttr(object, name, value) < 0, "an object without a dict takes an attribute");
    return false;
  }
  if (!PyDict_CheckExact(dict)) stop("sets an attribute of an object whose __dict__ is of another class");
  instance_dict_source(object);
  if (!value && !has_entry(dict, name)) {
    attribute_error(object, name);
    return false;
  }
  record_attribute_effect(dict, name, value);
  return true;
}

bool Evaluator::has_entry(PyObject* dict, PyObject* name) {
  if (auto written = attribute_effect(dict, name)) return static_cast<bool>(*written);
  const SourceId source = source_of(dict);
  if (PyDict_GetItemWithError(dict, name)) {
    admit_presence(guards().dict_item(source, name));
    return true;
  }
  guards().require(source, CheckKind::Absent, name);
  return false;
}

bool Evaluator::set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  if (trace::is_trace_tensor(object)) {
    if (value && name_is(name, "grad")) return set_gradient(object, value);
    stop(fmt::format("sets attribute {} of a tensor", PyUnicode_AsUTF8(name)));
  }
  if (PyType_Check(object)) stop("sets an attribute of a class");
  if (PyExceptionInstance_Check(object) && name_is(name, "__traceback__")) {
    // What is put there is that exception's own, as good as any: nothing looks into it.
    if (value && is_unknown_traceback(value) && raised_.contains(object)) return true;
    stop("replaces a traceback");
  }
  if (PyModule_Check(object)) {
    pin(object);
    PyObject* dict = PyModule_GetDict(object);
    sources_.emplace(dict, guards().pinned(dict));
    if (!value && !has_entry(dict, name)) stop("deletes an attribute that a module lacks");
    record_attribute_effect(dict, name, value);
    return true;
  }
  PyTypeObject* type = Py_TYPE(object);
  Ref setter = type_lookup(type, interned(value ? "__setattr__" : "__delattr__").get());
  if (setter.get() == Py_None)
    stop(fmt::format("asks an object whose class has {} = None", value ? "__setattr__" : "__delattr__"));
  if (setter && PyFunction_Check(setter.get())) {
    PyObject* module_class = well_known("torch.nn", "Module");
    // What Module's own setter asks the object for.
    const auto is_own = [&](const char* asked) {
      return is_overridden(type, reinterpret_cast<PyTypeObject*>(module_class), asked);
    };
    if (module_class && !is_own("__getattribute__") && !is_own("register_parameter") &&
        setter == _PyType_Lookup(reinterpret_cast<PyTypeObject*>(module_class),
                                 interned(value ? "__setattr__" : "__delattr__").get())) {
      if (!is_external(object)) return PyObject_SetAttr(object, name, value) == 0;
      const bool special =
          value &&
          (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(well_known("torch.nn", "Parameter"))) ||
           PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(module_class)));
      if (special) stop("assigns a parameter or a module to an attribute of a module");
      for (const char* group : {"_parameters", "_buffers", "_modules"}) {
        Ref dict = generic_get_attribute(object, interned(group).get());
        const int found = dict ? contains(dict.get(), name) : 0;
        if (found > 0) {
          if (value && get_item(dict.get(), name) == value)
            return true;  // `self.count += 1` puts back what was there
          stop("replaces a parameter, buffer or submodule");
        }
        PyErr_Clear();
      }
      return generic_set_attribute(object, name, value);
    }
    pin(setter.get());
    std::vector<Ref> args;
    args.push_back(Ref::borrow(object));
    args.push_back(Ref::borrow(name));
    if (value) args.push_back(Ref::borrow(value));
    return static_cast<bool>(call_positional(setter.get(), std::move(args)));
  }
  if (setter && !is_of_c(setter.get()))
    stop(fmt::format("sets an attribute of an object whose setter is of type {}",
                     Py_TYPE(setter.get())->tp_name));
  if (PyFunction_Check(object) && is_external(object)) stop("sets an attribute of a function");
  return generic_set_attribute(object, name, value);
}

}  // namespace oxy::eval
