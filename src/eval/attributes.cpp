// Attribute access, as CPython resolves it, with a guard for every place that was looked at.
#include <fmt/format.h>
#include <structmember.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "cpy/object_dict.h"
#include "cpy/type.h"
#include "eval/builtins.h"
#include "eval/evaluator.h"
#include "eval/generator.h"
#include "eval/generic_access.h"
#include "eval/hook_handle.h"
#include "eval/objects.h"
#include "eval/pending_error.h"
#include "eval/torch_call.h"
#include "eval/traceback.h"
#include "eval/varying_number.h"
#include "guards/constants.h"
#include "runtime/tensor_object.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::kNoSource;
using guards::SourceKind;

namespace {

bool wraps(PyObject* slot_wrapper, void* function) {
  return reinterpret_cast<PyWrapperDescrObject*>(slot_wrapper)->d_wrapped == function;
}

// Whether a `__getattribute__` is what objects have that say nothing about it.
bool is_generic_access(PyObject* getattribute) {
  return Py_IS_TYPE(getattribute, &PyWrapperDescr_Type) &&
         wraps(getattribute, reinterpret_cast<void*>(PyObject_GenericGetAttr));
}

// Attributes of a tensor whose value is not that of its trace tensor, or whose use changes the real tensor.
constexpr std::array<std::string_view, 36> kUntraceable = {"grad",
                                                           "grad_fn",
                                                           "_grad",
                                                           "_base",
                                                           "_version",
                                                           "data_ptr",
                                                           "const_data_ptr",
                                                           "mutable_data_ptr",
                                                           "detach_",  // refuses views
                                                           "ldexp_",  // refuses integers, in a way of its own
                                                           "storage",
                                                           "untyped_storage",
                                                           "_typed_storage",
                                                           "_backward_hooks",
                                                           "register_post_accumulate_grad_hook",
                                                           "retain_grad",
                                                           "retains_grad",
                                                           "set_",
                                                           "resize_",
                                                           "resize_as_",
                                                           "share_memory_",
                                                           "pin_memory",
                                                           "__dlpack__",
                                                           "__array__",
                                                           "_cdata",
                                                           "__reduce_ex__",
                                                           "__reduce__",
                                                           "__setstate__",
                                                           "_post_accumulate_grad_hooks",
                                                           "__deepcopy__",
                                                           "storage_offset",
                                                           "storage_offset_",
                                                           "_is_view",
                                                           "__dict__",
                                                           "_make_subclass",
                                                           "as_subclass"};

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

bool is_untraceable(std::string_view tensor_attribute) {
  return std::find(kUntraceable.begin(), kUntraceable.end(), tensor_attribute) != kUntraceable.end();
}

Ref Evaluator::type_lookup(PyTypeObject* type, PyObject* name) {
  Ref found = Ref::borrow(_PyType_Lookup(type, name));
  guard_type_lookup(type, name, found.get());
  return found;
}

bool Evaluator::has_python_special(PyObject* object, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  Ref found = type_lookup(type, interned(name).get());
  // Each operation has an error of its own for it. A class that is not hashed has no __hash__ as any other.
  if (found.get() == Py_None && std::string_view(name) != "__hash__")
    stop(fmt::format("asks an object whose class has {} = None", name));
  if (!found || is_of_c(found.get())) return false;
  const bool is_called = PyFunction_Check(found.get()) || Py_TYPE(found.get()) == &PyClassMethod_Type ||
                         Py_TYPE(found.get()) == &PyStaticMethod_Type ||
                         (PyType_HasFeature(Py_TYPE(found.get()), Py_TPFLAGS_HEAPTYPE) &&
                          Py_TYPE(found.get())->tp_call && !PyType_Check(found.get()));
  if (!is_called)
    stop(fmt::format("asks an object whose {} is of type {}", name, Py_TYPE(found.get())->tp_name));
  return true;
}

bool Evaluator::takes_writes(PyObject* found) {
  if (!found) return false;
  PyTypeObject* const kind = Py_TYPE(found);
  if (PyType_HasFeature(kind, Py_TPFLAGS_HEAPTYPE))
    for (const char* name : {"__get__", "__set__", "__delete__"}) type_lookup(kind, interned(name).get());
  return kind->tp_descr_set;
}

Ref Evaluator::special_method(PyObject* object, const char* name) {
  Ref key = interned(name);
  if (trace::is_trace_tensor(object)) return Ref::steal(PyObject_GetAttr(object, key.get()));
  Ref found = type_lookup(Py_TYPE(object), key.get());
  if (!found) return {};
  return bind_descriptor(found.get(), object, Py_TYPE(object));
}

Ref Evaluator::call_special(PyObject* object, const char* name, PyTypeObject* type) {
  const Ref method = special_method(object, name);
  Ref result = method ? call_positional(method.get(), {}) : Ref();
  if (!result) return {};
  PyTypeObject* const given =
      is_varying_number(result.get()) ? varying_class(result.get()) : Py_TYPE(result.get());
  if (given != type) stop(fmt::format("{}() of an object returns what is no {}", name, type->tp_name));
  return result;
}

// What `descriptor`, found on the type, gives for an instance (null object: for the type itself).
Ref Evaluator::bind_descriptor(PyObject* descriptor, PyObject* object, PyTypeObject* type) {
  if (PyFunction_Check(descriptor)) {
    pin(descriptor);
    return object ? Ref::steal(PyMethod_New(descriptor, object)) : Ref::borrow(descriptor);
  }
  PyTypeObject* kind = Py_TYPE(descriptor);
  if (kind == &PyClassMethod_Type || kind == &PyStaticMethod_Type) {
    Ref function = Ref::steal(PyObject_GetAttrString(descriptor, "__func__"));
    if (!function) return {};
    Ref pinned = pin(function.get());
    if (kind == &PyStaticMethod_Type) return pinned;
    pin(reinterpret_cast<PyObject*>(type));
    if (PyFunction_Check(function.get()))
      return Ref::steal(PyMethod_New(function.get(), reinterpret_cast<PyObject*>(type)));
    return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
  }
  if (kind == &PyProperty_Type) {
    if (!object) return pin(descriptor);
    Ref getter = Ref::steal(PyObject_GetAttrString(descriptor, "fget"));
    if (!getter || getter == Py_None)  // it says what is wrong
      return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
    pin(getter.get());
    return call_positional(getter.get(), {Ref::borrow(object)});
  }
  if (kind == reinterpret_cast<PyTypeObject*>(well_known("_collections", "_tuplegetter"))) {
    // A field of a named tuple: its state is the index.
    pin(descriptor);
    if (!object) return Ref::borrow(descriptor);
    Ref parts = Ref::steal(PyObject_CallMethod(descriptor, "__reduce__", nullptr));
    if (!parts) return {};
    return get_item(object, PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0));
  }
  if (c_class_name(kind) == "functools._lru_cache_wrapper") {
    pin(descriptor);
    return object ? Ref::steal(PyMethod_New(descriptor, object)) : Ref::borrow(descriptor);
  }
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type)
    return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
  if (kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type) {
    if (!object) return pin(descriptor);
    const auto* const field =
        kind == &PyMemberDescr_Type ? reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member : nullptr;
    const SourceId source = source_of(object);
    const bool is_written_at_will = field && !(field->flags & READONLY);  // `__doc__` of properties
    if (source == kNoSource || (is_identity_object(object) && !is_written_at_will))
      return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
    if (!field || (field->type != T_OBJECT && field->type != T_OBJECT_EX))
      stop(fmt::format("reads a computed attribute of an object of type {}", type->tp_name));
    Ref name = Ref::borrow(PyDescr_NAME(descriptor));
    // What is written to a container are its entries.
    if (auto written = is_container(object) ? std::nullopt : attribute_effect(object, name.get())) {
      if (*written) return *written;
      return attribute_error(object, name.get());
    }
    const SourceId member = guards().derived(SourceKind::Member, source, descriptor);
    Ref value = Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
    if (!value) {
      if (PyErr_ExceptionMatches(PyExc_AttributeError)) guards().require(member, CheckKind::Unbound, nullptr);
      return {};
    }
    return admit(value.get(), member);
  }
  Ref get_name = interned("__get__");
  Ref get = type_lookup(kind, get_name.get());
  if (!get) return pin(descriptor);
  if (PyFunction_Check(get.get())) {
    Ref hold = pin(descriptor);
    std::vector<Ref> args;
    args.push_back(hold);
    args.push_back(object ? Ref::borrow(object) : Ref::borrow(Py_None));
    args.push_back(pin(reinterpret_cast<PyObject*>(type)));
    return call_positional(get.get(), std::move(args));
  }
  if (!object) return Ref::steal(kind->tp_descr_get(descriptor, nullptr, reinterpret_cast<PyObject*>(type)));
  if (PyCFunction_Check(descriptor)) return pin(descriptor);
  if (PyType_Check(descriptor) || PyModule_Check(descriptor)) return pin(descriptor);
  stop(fmt::format("a descriptor of type {}", kind->tp_name));
}

Ref Evaluator::read_field(PyObject* object, PyObject* descriptor) {
  pin(object);
  const SourceId field = guards().derived(SourceKind::Member, source_of(object), descriptor);
  Ref value = Ref::steal(PyObject_GetAttr(object, PyDescr_NAME(descriptor)));
  return value ? admit(value.get(), field) : Ref();
}

bool Evaluator::overrides_class(PyObject* object) {
  const Ref name = interned("__class__");
  return type_lookup(Py_TYPE(object), name.get()) != _PyType_Lookup(&PyBaseObject_Type, name.get());
}

SourceId Evaluator::instance_dict_source(PyObject* object) {
  const SourceId source = source_of(object);
  PyObject* dict = cpy::materialized_dict(object);
  if (source == kNoSource || !dict) return kNoSource;
  const SourceId id = guards().instance_dict(source);
  sources_.emplace(dict, id);
  return id;
}

Ref Evaluator::generic_get_attribute(PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyObject* own = _PyType_Lookup(type, interned("__getattribute__").get());
      own && PyFunction_Check(own) &&
      !is_generic_below(type, "__getattribute__", reinterpret_cast<void*>(PyObject_GenericGetAttr)))
    stop(fmt::format("reads an attribute of a {}, which C code finds", type->tp_name));
  if (raised_.contains(object) && name_is(name, "__traceback__")) return Ref::borrow(unknown_traceback());
  if (name_is(name, "__class__") && !overrides_class(object))
    return pin(reinterpret_cast<PyObject*>(class_seen(object)));
  const SourceId source = source_of(object);
  if (name_is(name, "__dict__")) {
    if (const Ref own = type_lookup(type, name); own && Py_TYPE(own.get()) != &PyGetSetDescr_Type)
      return bind_descriptor(own.get(), object, type);
    PyObject* dict = cpy::materialized_dict(object);
    if (!dict) return attribute_error(object, name);
    if (source != kNoSource)
      instance_dict_source(object);
    else
      fresh_dicts_.push_back(dict);
    keep_alive_.push_back(Ref::borrow(dict));
    return Ref::borrow(dict);
  }
  Ref descriptor = type_lookup(type, name);
  if (takes_writes(descriptor.get()) && Py_TYPE(descriptor.get())->tp_descr_get)
    return bind_descriptor(descriptor.get(), object, type);
  if (source == kNoSource) {
    if (PyObject** slot = _PyObject_GetDictPtr(object); slot && *slot) {
      if (PyObject* value = PyDict_GetItemWithError(*slot, name)) return Ref::borrow(value);
    } else if (PyObject* dict = cpy::materialized_dict(object)) {
      if (PyObject* value = PyDict_GetItemWithError(dict, name)) return Ref::borrow(value);
    }
    if (PyErr_Occurred()) return {};
  } else if (PyObject* dict = cpy::materialized_dict(object)) {
    const SourceId dict_source = instance_dict_source(object);
    if (auto written = attribute_effect(dict, name)) {
      if (*written) return *written;
    } else if (PyObject* value = PyDict_GetItemWithError(dict, name)) {
      return admit(value, guards().dict_item(dict_source, name));
    } else {
      if (PyErr_Occurred()) return {};
      guards().require(dict_source, CheckKind::Absent, name);
    }
  }
  if (descriptor) return bind_descriptor(descriptor.get(), object, type);
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

// super().name: the class attribute after `start` in the method resolution order of the object's type.
Ref super_attribute(Evaluator& evaluator, PyObject* super_object, PyObject* name) {
  if (name_is(name, "__class__")) return Ref::borrow(reinterpret_cast<PyObject*>(&PySuper_Type));
  Ref start = Ref::steal(PyObject_GetAttrString(super_object, "__thisclass__"));
  Ref self = Ref::steal(PyObject_GetAttrString(super_object, "__self__"));
  Ref type = Ref::steal(PyObject_GetAttrString(super_object, "__self_class__"));
  if (!start || !self || !type || self == Py_None) evaluator.stop("an unbound super object");
  auto* self_type = reinterpret_cast<PyTypeObject*>(type.get());
  evaluator.guard_resolution_order(self_type);
  PyObject* order = self_type->tp_mro;
  Py_ssize_t i = 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(order);
  while (i < count && PyTuple_GET_ITEM(order, i) != start.get()) ++i;
  for (++i; i < count; ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    PyObject* found = PyDict_GetItemWithError(cpy::type_dict(base).get(), name);
    evaluator.guard_type_lookup(base, name, _PyType_Lookup(base, name));
    if (!found) continue;
    const bool on_class = self == type;
    return evaluator.bind_descriptor(found, on_class ? nullptr : self.get(), self_type);
  }
  if (_PyType_Lookup(&PySuper_Type, name)) evaluator.stop("reads an attribute of a super object itself");
  return attribute_error(super_object, name);
}

}  // namespace

Ref Evaluator::get_attribute(PyObject* object, PyObject* name) {
  if (is_varying_number(object)) return get_attribute(constant_of(object).get(), name);
  Ref value = read_attribute(object, name);
  // Every AttributeError that leaves an attribute access says what was accessed.
  if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) tell_attribute(object, name);
  return value;
}

Ref Evaluator::gradient_of(PyObject* tensor) {
  const auto real = external_of_.find(tensor);
  Ref name = interned("grad");
  if (real == external_of_.end())
    return runtime::tensor_of(tensor).is_leaf() ? Ref::steal(PyObject_GetAttr(tensor, name.get())) : Ref();
  if (auto written = attribute_effect(tensor, name.get())) return *written;
  // Of others the attribute warns.
  if (const at::Tensor& leaf = runtime::tensor_of(real->second); !leaf.is_leaf() && !leaf.retains_grad())
    return {};
  PyObject* descriptor = _PyType_Lookup(runtime::tensor_class(), name.get());
  if (!descriptor || Py_TYPE(descriptor) != &PyGetSetDescr_Type) return {};
  const SourceId source = guards().derived(SourceKind::Member, source_of(tensor), descriptor);
  PyObject* value =
      guards::read({SourceKind::Member, source_of(tensor), -1, Ref::borrow(descriptor)}, real->second);
  return value ? admit(value, source) : Ref();
}

bool Evaluator::set_gradient(PyObject* tensor, PyObject* value) {
  Ref name = interned("grad");
  if (!gradient_of(tensor)) stop("sets .grad of a tensor that has none");
  if (value != Py_None) {
    if (!trace::is_trace_tensor(value)) stop("sets .grad of a tensor to something else");
    const at::Tensor &owner = runtime::tensor_of(tensor), &gradient = runtime::tensor_of(value);
    const bool fits = owner.sizes() == gradient.sizes() && owner.dtype() == gradient.dtype() &&
                      owner.device() == gradient.device() && value != tensor;
    if (!fits) stop("sets .grad of a tensor to one that does not fit");
  }
  if (!is_external(tensor)) return PyObject_SetAttr(tensor, name.get(), value) == 0;
  record_attribute_effect(tensor, name.get(), value);
  return true;
}

void Evaluator::require_no_gradient_hooks(PyObject* tensor) {
  if (guards::has_gradient_hooks(runtime::tensor_of(external_of_.at(tensor))))
    stop("runs a backward pass into a tensor with hooks");
  guards().require(source_of(tensor), CheckKind::NoGradientHooks, nullptr);
}

Ref Evaluator::read_attribute(PyObject* object, PyObject* name) {
  if (trace::is_trace_tensor(object)) {
    const char* utf8 = PyUnicode_AsUTF8(name);
    if (name_is(name, "grad"))
      if (Ref gradient = gradient_of(object)) return gradient;
    if (utf8 && is_untraceable(utf8)) stop(fmt::format("uses .{} of a tensor", utf8));
    if (type_lookup(Py_TYPE(object), name))
      return torch_result(*this, "builtins", "getattr", {object, name},
                          [&] { return Ref::steal(PyObject_GetAttr(object, name)); });
    auto real = external_of_.find(object);
    if (real == external_of_.end()) return attribute_error(object, name);
    const SourceId dict_source = guards().instance_dict(source_of(object));
    PyObject* dict = cpy::materialized_dict(real->second);
    PyObject* value = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
    if (value) return admit(value, guards().dict_item(dict_source, name));
    guards().require(dict_source, CheckKind::Absent, name);
    return attribute_error(object, name);
  }
  if (is_generator(object) || is_coroutine(object)) return generator_attribute(object, name);
  if (is_unknown_traceback(object)) stop("looks into a traceback");
  if (is_hook_handle(object)) stop("uses the handle of a hook");
  if (raised_.contains(object) && name_is(name, "__traceback__")) return Ref::borrow(unknown_traceback());
  if (raised_.contains(object) && name_is(name, "__context__")) {
    rely_on_nothing_handled();
    return Ref::steal(PyObject_GetAttr(object, name));
  }
  if (PyModule_Check(object)) return module_attribute(object, name);
  if (PyType_Check(object)) return class_attribute(object, name);
  if (is_type_alias(object)) return alias_attribute(object, name);
  if (Py_TYPE(object) == &PySuper_Type && is_external(object)) stop("a super object made before the call");
  if (Py_TYPE(object) == &PySuper_Type) return super_attribute(*this, object, name);
  if (PyMethod_Check(object)) {
    const SourceId source = source_of(object);
    if (name_is(name, "__func__"))
      return source == kNoSource
                 ? Ref::borrow(PyMethod_GET_FUNCTION(object))
                 : admit(PyMethod_GET_FUNCTION(object), guards().derived(SourceKind::MethodFunction, source));
    if (name_is(name, "__self__"))
      return source == kNoSource
                 ? Ref::borrow(PyMethod_GET_SELF(object))
                 : admit(PyMethod_GET_SELF(object), guards().derived(SourceKind::MethodSelf, source));
    // What the class of bound methods has goes before what their functions have.
    if (name_is(name, "__call__")) return Ref::steal(PyObject_GetAttr(object, name));
    if (_PyType_Lookup(&PyMethod_Type, name) && !name_is(name, "__doc__"))
      stop("reads what bound methods have of their own");
    return get_attribute(PyMethod_GET_FUNCTION(object), name);
  }
  if (PyFunction_Check(object)) {
    if (!is_known_by_code(object)) pin(object);
    if (PyObject* field = _PyType_Lookup(&PyFunction_Type, name)) {
      if (name_is(name, "__dict__")) return generic_get_attribute(object, name);
      if (is_known_by_code(object) && !Py_TYPE(field)->tp_descr_set) require_identity(object);
      if (Py_TYPE(field)->tp_descr_set && !is_fresh_function(object)) return read_field(object, field);
      Ref value = Ref::steal(PyObject_GetAttr(object, name));
      return value && is_identity_object(value.get()) ? pin(value.get()) : value;
    }
    return generic_get_attribute(object, name);
  }
  if ((guards::is_constant(object) || is_value_object(object)) && !is_enum_member(object))
    return Ref::steal(PyObject_GetAttr(object, name));
  PyTypeObject* type = Py_TYPE(object);
  if (!is_external(object) && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    return Ref::steal(PyObject_GetAttr(object, name));
  if (is_external(object) && is_bound_c_method(object)) {
    if (name_is(name, "__self__"))
      return admit(PyCFunction_GET_SELF(object), guards().derived(SourceKind::MethodSelf, source_of(object)));
    const bool is_of_definition = name_is(name, "__name__") || name_is(name, "__doc__");
    if (is_known_by_code(object) && !is_of_definition) require_identity(object);
  }
  if (PyCFunction_Check(object) || is_builtin_iterator(object))
    return Ref::steal(PyObject_GetAttr(object, name));

  Ref result;
  Ref getattribute = type_lookup(type, interned("__getattribute__").get());
  if (getattribute && PyFunction_Check(getattribute.get())) {
    pin(getattribute.get());
    result = call_positional(getattribute.get(), {Ref::borrow(object), Ref::borrow(name)});
  } else if (getattribute && !is_generic_access(getattribute.get())) {
    stop(fmt::format("reads an attribute of a {}, which C code finds", type->tp_name));
  } else {
    result = generic_get_attribute(object, name);
  }
  if (result || !PyErr_ExceptionMatches(PyExc_AttributeError)) return result;
  Ref fallback;
  {
    cpy::SavedError keep;  // looking up a type clears the error
    fallback = type_lookup(type, interned("__getattr__").get());
  }
  if (!fallback) return {};
  PyErr_Clear();
  if (PyObject* module_class = well_known("torch.nn", "Module");
      module_class && !has_python_special(object, "__getattribute__") &&
      fallback ==
          _PyType_Lookup(reinterpret_cast<PyTypeObject*>(module_class), interned("__getattr__").get())) {
    for (const char* group : {"_parameters", "_buffers", "_modules"}) {
      Ref dict = generic_get_attribute(object, interned(group).get());
      if (!dict) {
        PyErr_Clear();
        continue;
      }
      const int found = contains(dict.get(), name);
      if (found < 0) return {};
      if (found) return get_item(dict.get(), name);
    }
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", _PyType_Name(type), name);
    return {};
  }
  if (!PyFunction_Check(fallback.get())) stop(fmt::format("__getattr__ of type {}", type->tp_name));
  pin(fallback.get());
  return call_positional(fallback.get(), {Ref::borrow(object), Ref::borrow(name)});
}

}  // namespace oxy::eval
