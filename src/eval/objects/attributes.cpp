// Reads of attributes, as CPython resolves them, with a guard for every place that is looked at.
#include "eval/objects/attributes.h"

#include <fmt/format.h>
#include <structmember.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "cpy/object_dict.h"
#include "cpy/type.h"
#include "eval/externals/admission.h"
#include "eval/externals/effects.h"
#include "eval/externals/identity.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/class_attributes.h"
#include "eval/objects/containers.h"
#include "eval/objects/instance_checks.h"
#include "eval/objects/module_attributes.h"
#include "eval/python/generic_access.h"
#include "eval/python/hook_handle.h"
#include "eval/python/objects.h"
#include "eval/python/pending_error.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/torch/requires_grad.h"
#include "eval/torch/torch_call.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

namespace {

Ref read_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);

}  // namespace

using guards::CheckKind;
using guards::kNoSource;
using guards::SourceKind;

namespace {

bool wraps(PyObject* slot_wrapper, void* function) {
  return reinterpret_cast<PyWrapperDescrObject*>(slot_wrapper)->d_wrapped == function;
}

// Whether a `__getattribute__` is the default one.
bool is_generic_access(PyObject* getattribute) {
  return Py_IS_TYPE(getattribute, &PyWrapperDescr_Type) &&
         wraps(getattribute, reinterpret_cast<void*>(PyObject_GenericGetAttr));
}

}  // namespace

Ref attribute_error(PyObject* object, PyObject* name) {
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(object)->tp_name, name);
  return {};
}

bool is_generic_below(PyTypeObject* type, const char* name, void* generic) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    const Ref own = cpy::type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i)));
    PyObject* const found = PyDict_GetItem(own.get(), interned(name).get());
    if (found && Py_IS_TYPE(found, &PyWrapperDescr_Type)) return wraps(found, generic);
  }
  return true;
}

bool takes_writes(Interpreter& interpreter, PyObject* found) {
  if (!found) return false;
  PyTypeObject* const kind = Py_TYPE(found);
  if (PyType_HasFeature(kind, Py_TPFLAGS_HEAPTYPE))
    for (const char* name : {"__get__", "__set__", "__delete__"})
      type_lookup(interpreter, kind, interned(name).get());
  return kind->tp_descr_set;
}

Ref special_method(Interpreter& interpreter, PyObject* object, const char* name) {
  Ref key = interned(name);
  if (trace::is_trace_tensor(object)) return Ref::steal(PyObject_GetAttr(object, key.get()));
  Ref found = type_lookup(interpreter, Py_TYPE(object), key.get());
  if (!found) return {};
  return bind_descriptor(interpreter, found.get(), object, Py_TYPE(object));
}

Ref call_special(Interpreter& interpreter, PyObject* object, const char* name, PyTypeObject* type) {
  const Ref method = special_method(interpreter, object, name);
  Ref result = method ? call_positional(interpreter, method.get(), {}) : Ref();
  if (!result) return {};
  PyTypeObject* const given =
      is_varying_number(result.get()) ? varying_class(interpreter, result.get()) : Py_TYPE(result.get());
  if (given != type)
    interpreter.stop(fmt::format("{}() of an object returns what is no {}", name, type->tp_name));
  return result;
}

Ref bind_descriptor(Interpreter& interpreter, PyObject* descriptor, PyObject* object, PyTypeObject* type) {
  if (PyFunction_Check(descriptor)) {
    pin(interpreter, descriptor);
    return object ? Ref::steal(PyMethod_New(descriptor, object)) : Ref::borrow(descriptor);
  }
  PyTypeObject* kind = Py_TYPE(descriptor);
  if (kind == &PyClassMethod_Type || kind == &PyStaticMethod_Type) {
    Ref function = Ref::steal(PyObject_GetAttrString(descriptor, "__func__"));
    if (!function) return {};
    Ref pinned = pin(interpreter, function.get());
    if (kind == &PyStaticMethod_Type) return pinned;
    pin(interpreter, reinterpret_cast<PyObject*>(type));
    if (PyFunction_Check(function.get()))
      return Ref::steal(PyMethod_New(function.get(), reinterpret_cast<PyObject*>(type)));
    return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
  }
  if (kind == &PyProperty_Type) {
    if (!object) return pin(interpreter, descriptor);
    Ref getter = Ref::steal(PyObject_GetAttrString(descriptor, "fget"));
    if (!getter || getter == Py_None)  // the real one raises
      return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
    pin(interpreter, getter.get());
    return call_positional(interpreter, getter.get(), {Ref::borrow(object)});
  }
  if (kind == reinterpret_cast<PyTypeObject*>(well_known("_collections", "_tuplegetter"))) {
    // A field of a named tuple. Its only state is the index.
    pin(interpreter, descriptor);
    if (!object) return Ref::borrow(descriptor);
    Ref parts = Ref::steal(PyObject_CallMethod(descriptor, "__reduce__", nullptr));
    if (!parts) return {};
    return get_item(interpreter, object, PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0));
  }
  if (c_class_name(kind) == "functools._lru_cache_wrapper") {
    pin(interpreter, descriptor);
    return object ? Ref::steal(PyMethod_New(descriptor, object)) : Ref::borrow(descriptor);
  }
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type)
    return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
  if (kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type) {
    if (!object) return pin(interpreter, descriptor);
    const auto* const field =
        kind == &PyMemberDescr_Type ? reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member : nullptr;
    const SourceId source = interpreter.externals.source_of(object);
    const bool is_written_at_will = field && !(field->flags & READONLY);  // `__doc__` of properties
    if (source == kNoSource || (is_identity_object(object) && !is_written_at_will))
      return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
    if (!field || (field->type != T_OBJECT && field->type != T_OBJECT_EX))
      interpreter.stop(fmt::format("reads a computed attribute of an object of type {}", type->tp_name));
    Ref name = Ref::borrow(PyDescr_NAME(descriptor));
    // The shadow of a container has its entries, not its attributes.
    if (auto written =
            is_container(object) ? std::nullopt : attribute_effect(interpreter, object, name.get())) {
      if (*written) return *written;
      return attribute_error(object, name.get());
    }
    const SourceId member = interpreter.guards().derived(SourceKind::Member, source, descriptor);
    Ref value = Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
    if (!value) {
      if (PyErr_ExceptionMatches(PyExc_AttributeError))
        interpreter.guards().require(member, CheckKind::Unbound, nullptr);
      return {};
    }
    return admit(interpreter, value.get(), member);
  }
  Ref get_name = interned("__get__");
  Ref get = type_lookup(interpreter, kind, get_name.get());
  if (!get) return pin(interpreter, descriptor);
  if (PyFunction_Check(get.get())) {
    Ref hold = pin(interpreter, descriptor);
    std::vector<Ref> args;
    args.push_back(hold);
    args.push_back(object ? Ref::borrow(object) : Ref::borrow(Py_None));
    args.push_back(pin(interpreter, reinterpret_cast<PyObject*>(type)));
    return call_positional(interpreter, get.get(), std::move(args));
  }
  if (!object) return Ref::steal(kind->tp_descr_get(descriptor, nullptr, reinterpret_cast<PyObject*>(type)));
  if (PyCFunction_Check(descriptor)) return pin(interpreter, descriptor);
  if (PyType_Check(descriptor) || PyModule_Check(descriptor)) return pin(interpreter, descriptor);
  interpreter.stop(fmt::format("a descriptor of type {}", kind->tp_name));
}

Ref read_field(Interpreter& interpreter, PyObject* object, PyObject* descriptor) {
  pin(interpreter, object);
  const SourceId field =
      interpreter.guards().derived(SourceKind::Member, interpreter.externals.source_of(object), descriptor);
  Ref value = Ref::steal(PyObject_GetAttr(object, PyDescr_NAME(descriptor)));
  return value ? admit(interpreter, value.get(), field) : Ref();
}

bool overrides_class(Interpreter& interpreter, PyObject* object) {
  const Ref name = interned("__class__");
  return type_lookup(interpreter, Py_TYPE(object), name.get()) !=
         _PyType_Lookup(&PyBaseObject_Type, name.get());
}

SourceId instance_dict_source(Interpreter& interpreter, PyObject* object) {
  const SourceId source = interpreter.externals.source_of(object);
  PyObject* dict = cpy::materialized_dict(object);
  if (source == kNoSource || !dict) return kNoSource;
  const SourceId id = interpreter.guards().instance_dict(source);
  interpreter.externals.sources.emplace(dict, id);
  return id;
}

Ref generic_get_attribute(Interpreter& interpreter, PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyObject* own = _PyType_Lookup(type, interned("__getattribute__").get());
      own && PyFunction_Check(own) &&
      !is_generic_below(type, "__getattribute__", reinterpret_cast<void*>(PyObject_GenericGetAttr)))
    interpreter.stop(fmt::format("reads an attribute of a {}, which C code finds", type->tp_name));
  if (interpreter.calls.raised.contains(object) && name_is(name, "__traceback__"))
    return Ref::borrow(unknown_traceback());
  if (name_is(name, "__class__") && !overrides_class(interpreter, object))
    return pin(interpreter, reinterpret_cast<PyObject*>(class_seen(interpreter, object)));
  const SourceId source = interpreter.externals.source_of(object);
  if (name_is(name, "__dict__")) {
    if (const Ref own = type_lookup(interpreter, type, name);
        own && Py_TYPE(own.get()) != &PyGetSetDescr_Type)
      return bind_descriptor(interpreter, own.get(), object, type);
    PyObject* dict = cpy::materialized_dict(object);
    if (!dict) return attribute_error(object, name);
    if (source != kNoSource)
      instance_dict_source(interpreter, object);
    else
      interpreter.shadows.fresh_dicts.push_back(dict);
    interpreter.externals.keep_alive.push_back(Ref::borrow(dict));
    return Ref::borrow(dict);
  }
  Ref descriptor = type_lookup(interpreter, type, name);
  if (takes_writes(interpreter, descriptor.get()) && Py_TYPE(descriptor.get())->tp_descr_get)
    return bind_descriptor(interpreter, descriptor.get(), object, type);
  if (source == kNoSource) {
    if (PyObject** slot = _PyObject_GetDictPtr(object); slot && *slot) {
      if (PyObject* value = PyDict_GetItemWithError(*slot, name)) return Ref::borrow(value);
    } else if (PyObject* dict = cpy::materialized_dict(object)) {
      if (PyObject* value = PyDict_GetItemWithError(dict, name)) return Ref::borrow(value);
    }
    if (PyErr_Occurred()) return {};
  } else if (PyObject* dict = cpy::materialized_dict(object)) {
    const SourceId dict_source = instance_dict_source(interpreter, object);
    if (auto written = attribute_effect(interpreter, dict, name)) {
      if (*written) return *written;
    } else if (PyObject* value = PyDict_GetItemWithError(dict, name)) {
      return admit(interpreter, value, interpreter.guards().dict_item(dict_source, name));
    } else {
      if (PyErr_Occurred()) return {};
      interpreter.guards().require(dict_source, CheckKind::Absent, name);
    }
  }
  if (descriptor) return bind_descriptor(interpreter, descriptor.get(), object, type);
  return attribute_error(object, name);
}

namespace {

void tell_attribute(PyObject* object, PyObject* name) {
  PendingError pending;
  if (!PyObject_TypeCheck(pending.value(), reinterpret_cast<PyTypeObject*>(PyExc_AttributeError))) return;
  auto* error = reinterpret_cast<PyAttributeErrorObject*>(pending.value());
  if (error->name || error->obj) return;
  error->name = Py_NewRef(name);
  error->obj = Py_NewRef(object);
}

// super().name: the attribute of the classes behind the start class in the method resolution order of the
// object's type.
Ref super_attribute(Interpreter& interpreter, PyObject* super_object, PyObject* name) {
  if (name_is(name, "__class__")) return Ref::borrow(reinterpret_cast<PyObject*>(&PySuper_Type));
  Ref start = Ref::steal(PyObject_GetAttrString(super_object, "__thisclass__"));
  Ref self = Ref::steal(PyObject_GetAttrString(super_object, "__self__"));
  Ref type = Ref::steal(PyObject_GetAttrString(super_object, "__self_class__"));
  if (!start || !self || !type || self == Py_None) interpreter.stop("an unbound super object");
  auto* self_type = reinterpret_cast<PyTypeObject*>(type.get());
  guard_resolution_order(interpreter, self_type);
  PyObject* order = self_type->tp_mro;
  Py_ssize_t i = 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(order);
  while (i < count && PyTuple_GET_ITEM(order, i) != start.get()) ++i;
  for (++i; i < count; ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    PyObject* found = PyDict_GetItemWithError(cpy::type_dict(base).get(), name);
    guard_type_lookup(interpreter, base, name, _PyType_Lookup(base, name));
    if (!found) continue;
    const bool on_class = self == type;
    return bind_descriptor(interpreter, found, on_class ? nullptr : self.get(), self_type);
  }
  if (_PyType_Lookup(&PySuper_Type, name)) interpreter.stop("reads an attribute of a super object itself");
  return attribute_error(super_object, name);
}

}  // namespace

Ref get_attribute(Interpreter& interpreter, PyObject* object, PyObject* name) {
  if (is_varying_number(object))
    return get_attribute(interpreter, constant_of(interpreter, object).get(), name);
  Ref value = read_attribute(interpreter, object, name);
  // An AttributeError that leaves an attribute access gets the attributes `name` and `obj`.
  if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) tell_attribute(object, name);
  return value;
}

Ref gradient_of(Interpreter& interpreter, PyObject* tensor) {
  const auto real = interpreter.externals.external_of.find(tensor);
  Ref name = interned("grad");
  if (real == interpreter.externals.external_of.end())
    return runtime::tensor_of(tensor).is_leaf() ? Ref::steal(PyObject_GetAttr(tensor, name.get())) : Ref();
  if (auto written = attribute_effect(interpreter, tensor, name.get())) return *written;
  // For other tensors PyTorch warns about reading .grad.
  if (const at::Tensor& leaf = runtime::tensor_of(real->second); !leaf.is_leaf() && !leaf.retains_grad())
    return {};
  PyObject* descriptor = _PyType_Lookup(runtime::tensor_class(), name.get());
  if (!descriptor || Py_TYPE(descriptor) != &PyGetSetDescr_Type) return {};
  const SourceId source =
      interpreter.guards().derived(SourceKind::Member, interpreter.externals.source_of(tensor), descriptor);
  PyObject* value =
      guards::read({SourceKind::Member, interpreter.externals.source_of(tensor), -1, Ref::borrow(descriptor)},
                   real->second);
  return value ? admit(interpreter, value, source) : Ref();
}

bool set_gradient(Interpreter& interpreter, PyObject* tensor, PyObject* value) {
  Ref name = interned("grad");
  if (!gradient_of(interpreter, tensor)) interpreter.stop("sets .grad of a tensor that has none");
  if (value != Py_None) {
    if (!trace::is_trace_tensor(value)) interpreter.stop("sets .grad of a tensor to something else");
    const at::Tensor &owner = runtime::tensor_of(tensor), &gradient = runtime::tensor_of(value);
    const bool fits = owner.sizes() == gradient.sizes() && owner.dtype() == gradient.dtype() &&
                      owner.device() == gradient.device() && value != tensor;
    if (!fits) interpreter.stop("sets .grad of a tensor to one that does not fit");
  }
  if (!interpreter.externals.is_external(tensor)) return PyObject_SetAttr(tensor, name.get(), value) == 0;
  record_attribute_effect(interpreter, tensor, name.get(), value);
  return true;
}

void require_no_gradient_hooks(Interpreter& interpreter, PyObject* tensor) {
  if (guards::has_gradient_hooks(runtime::tensor_of(interpreter.externals.external_of.at(tensor))))
    interpreter.stop("runs a backward pass into a tensor with hooks");
  interpreter.guards().require(interpreter.externals.source_of(tensor), CheckKind::NoGradientHooks, nullptr);
}

namespace {

Ref read_attribute(Interpreter& interpreter, PyObject* object, PyObject* name) {
  if (trace::is_trace_tensor(object)) {
    const char* utf8 = PyUnicode_AsUTF8(name);
    if (name_is(name, "requires_grad"))
      if (const at::Tensor& tensor = runtime::tensor_of(object);
          tensor.requires_grad() && !requires_grad_in_eager(interpreter, tensor))
        return Ref::borrow(Py_False);
    if (name_is(name, "grad"))
      if (Ref gradient = gradient_of(interpreter, object)) return gradient;
    if (utf8 && is_untraceable(utf8)) interpreter.stop(fmt::format("uses .{} of a tensor", utf8));
    if (type_lookup(interpreter, Py_TYPE(object), name))
      return torch_result(interpreter, "builtins", "getattr", {object, name},
                          [&] { return Ref::steal(PyObject_GetAttr(object, name)); });
    auto real = interpreter.externals.external_of.find(object);
    if (real == interpreter.externals.external_of.end()) return attribute_error(object, name);
    const SourceId dict_source = interpreter.guards().instance_dict(interpreter.externals.source_of(object));
    PyObject* dict = cpy::materialized_dict(real->second);
    PyObject* value = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
    if (value) return admit(interpreter, value, interpreter.guards().dict_item(dict_source, name));
    interpreter.guards().require(dict_source, CheckKind::Absent, name);
    return attribute_error(object, name);
  }
  if (is_generator(object) || is_coroutine(object)) return generator_attribute(interpreter, object, name);
  if (is_unknown_traceback(object)) interpreter.stop("looks into a traceback");
  if (is_hook_handle(object)) interpreter.stop("uses the handle of a hook");
  if (interpreter.calls.raised.contains(object) && name_is(name, "__traceback__"))
    return Ref::borrow(unknown_traceback());
  if (interpreter.calls.raised.contains(object) && name_is(name, "__context__")) {
    rely_on_nothing_handled(interpreter);
    return Ref::steal(PyObject_GetAttr(object, name));
  }
  if (PyModule_Check(object)) return module_attribute(interpreter, object, name);
  if (PyType_Check(object)) return class_attribute(interpreter, object, name);
  if (is_type_alias(object)) return alias_attribute(interpreter, object, name);
  if (Py_TYPE(object) == &PySuper_Type && interpreter.externals.is_external(object))
    interpreter.stop("a super object made before the call");
  if (Py_TYPE(object) == &PySuper_Type) return super_attribute(interpreter, object, name);
  if (PyMethod_Check(object)) {
    const SourceId source = interpreter.externals.source_of(object);
    if (name_is(name, "__func__"))
      return source == kNoSource ? Ref::borrow(PyMethod_GET_FUNCTION(object))
                                 : admit(interpreter, PyMethod_GET_FUNCTION(object),
                                         interpreter.guards().derived(SourceKind::MethodFunction, source));
    if (name_is(name, "__self__"))
      return source == kNoSource ? Ref::borrow(PyMethod_GET_SELF(object))
                                 : admit(interpreter, PyMethod_GET_SELF(object),
                                         interpreter.guards().derived(SourceKind::MethodSelf, source));
    // An attribute of the class of bound methods goes before one of the function.
    if (name_is(name, "__call__")) return Ref::steal(PyObject_GetAttr(object, name));
    if (_PyType_Lookup(&PyMethod_Type, name) && !name_is(name, "__doc__"))
      interpreter.stop("reads what bound methods have of their own");
    return get_attribute(interpreter, PyMethod_GET_FUNCTION(object), name);
  }
  if (PyFunction_Check(object)) {
    if (!interpreter.externals.is_known_by_code(object)) pin(interpreter, object);
    if (PyObject* field = _PyType_Lookup(&PyFunction_Type, name)) {
      if (name_is(name, "__dict__")) return generic_get_attribute(interpreter, object, name);
      if (interpreter.externals.is_known_by_code(object) && !Py_TYPE(field)->tp_descr_set)
        require_identity(interpreter, object);
      if (Py_TYPE(field)->tp_descr_set && !interpreter.calls.is_fresh_function(object))
        return read_field(interpreter, object, field);
      Ref value = Ref::steal(PyObject_GetAttr(object, name));
      return value && is_identity_object(value.get()) ? pin(interpreter, value.get()) : value;
    }
    return generic_get_attribute(interpreter, object, name);
  }
  if ((guards::is_constant(object) || is_value_object(object)) && !is_enum_member(object))
    return Ref::steal(PyObject_GetAttr(object, name));
  PyTypeObject* type = Py_TYPE(object);
  if (!interpreter.externals.is_external(object) && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    return Ref::steal(PyObject_GetAttr(object, name));
  if (interpreter.externals.is_external(object) && is_bound_c_method(object)) {
    if (name_is(name, "__self__"))
      return admit(
          interpreter, PyCFunction_GET_SELF(object),
          interpreter.guards().derived(SourceKind::MethodSelf, interpreter.externals.source_of(object)));
    const bool is_of_definition = name_is(name, "__name__") || name_is(name, "__doc__");
    if (interpreter.externals.is_known_by_code(object) && !is_of_definition)
      require_identity(interpreter, object);
  }
  if (PyCFunction_Check(object) || is_builtin_iterator(object))
    return Ref::steal(PyObject_GetAttr(object, name));

  Ref result;
  Ref getattribute = type_lookup(interpreter, type, interned("__getattribute__").get());
  if (getattribute && PyFunction_Check(getattribute.get())) {
    pin(interpreter, getattribute.get());
    result = call_positional(interpreter, getattribute.get(), {Ref::borrow(object), Ref::borrow(name)});
  } else if (getattribute && !is_generic_access(getattribute.get())) {
    interpreter.stop(fmt::format("reads an attribute of a {}, which C code finds", type->tp_name));
  } else {
    result = generic_get_attribute(interpreter, object, name);
  }
  if (result || !PyErr_ExceptionMatches(PyExc_AttributeError)) return result;
  Ref fallback;
  {
    cpy::SavedError keep;  // looking up a type clears the error
    fallback = type_lookup(interpreter, type, interned("__getattr__").get());
  }
  if (!fallback) return {};
  PyErr_Clear();
  if (PyObject* module_class = well_known("torch.nn", "Module");
      module_class && !has_python_special(interpreter, object, "__getattribute__") &&
      fallback ==
          _PyType_Lookup(reinterpret_cast<PyTypeObject*>(module_class), interned("__getattr__").get())) {
    for (const char* group : {"_parameters", "_buffers", "_modules"}) {
      Ref dict = generic_get_attribute(interpreter, object, interned(group).get());
      if (!dict) {
        PyErr_Clear();
        continue;
      }
      const int found = contains(interpreter, dict.get(), name);
      if (found < 0) return {};
      if (found) return get_item(interpreter, dict.get(), name);
    }
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", _PyType_Name(type), name);
    return {};
  }
  if (!PyFunction_Check(fallback.get()))
    interpreter.stop(fmt::format("__getattr__ of type {}", type->tp_name));
  pin(interpreter, fallback.get());
  return call_positional(interpreter, fallback.get(), {Ref::borrow(object), Ref::borrow(name)});
}

}  // namespace

}  // namespace oxy::eval
