// Calls of classes, which make instances.
#include "eval/methods/instances.h"

#include <fmt/format.h>

#include "eval/externals/admission.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/hashing.h"
#include "eval/externals/own_code.h"
#include "eval/externals/type_lookup.h"
#include "eval/methods/partial.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/torch/legacy_tensors.h"
#include "eval/torch/torch_call.h"
#include "eval/treatment/pure.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

// `type.__new__` of a C type, with the class as first argument.
Ref call_c_new(Interpreter& interpreter, PyObject* bound, Arguments arguments) {
  if (arguments.positional.empty() || !PyType_Check(arguments.positional[0].get()))
    return call_real(interpreter, bound, arguments);
  if (is_enum_class(arguments.positional[0].get())) interpreter.stop("makes an object of an enum class");
  auto* base = reinterpret_cast<PyTypeObject*>(PyCFunction_GET_SELF(bound));
  if (base == &PyBaseObject_Type) {
    auto* const type = reinterpret_cast<PyTypeObject*>(arguments.positional[0].get());
    // A type expression that typing does not cache is another object at each call.
    if (makes_type_expressions(type))
      interpreter.stop(
          fmt::format("makes an object of class {}", describe_callable(reinterpret_cast<PyObject*>(type))));
    if (!object_takes(interpreter, type, true,
                      arguments.positional.size() > 1 || !arguments.keywords.empty()))
      return {};
    type_lookup(interpreter, type,
                interned("__abstractmethods__").get());  // object.__new__ raises if the class has some
    Arguments only_class;
    only_class.positional.push_back(arguments.positional[0]);
    return call_real(interpreter, bound, only_class);
  }
  if (base == &PyDict_Type || base == &PyODict_Type || base == &PyList_Type || base == &PySet_Type) {
    Arguments only_class;
    only_class.positional.push_back(arguments.positional[0]);
    return call_real(interpreter, bound, only_class);
  }
  if (base == &PyTuple_Type || base == &PyFrozenSet_Type) {
    if (arguments.positional.size() > 1) {
      Ref& items = arguments.positional[1];
      items = base == &PyTuple_Type ? drain(interpreter, items.get(), true)
                                    : items_for_set(interpreter, items.get());
      if (!items) return {};
    }
    return call_real(interpreter, bound, arguments);
  }
  if (c_class_name(base) == "functools.partial") {
    // partial.__new__ flattens a partial that it is given.
    while (arguments.positional.size() > 1 && is_partial(arguments.positional[1].get())) {
      const Ref class_object = arguments.positional[0], partial = arguments.positional[1];
      arguments.positional.erase(arguments.positional.begin(), arguments.positional.begin() + 2);
      std::optional<OpenedPartial> opened = opened_partial(interpreter, partial.get(), std::move(arguments));
      if (!opened) return {};
      arguments = std::move(opened->arguments);
      arguments.positional.insert(arguments.positional.begin(), {class_object, opened->function});
    }
    return call_real(interpreter, bound, arguments);
  }
  if (base == &PyLong_Type || base == &PyFloat_Type || base == &PyUnicode_Type ||
      PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)))
    return call_real(interpreter, bound, arguments);
  if (c_class_name(base) == "torch._C._FunctionBase")
    interpreter.stop(fmt::format("makes an object of class {}, a node of autograd's graph",
                                 reinterpret_cast<PyTypeObject*>(arguments.positional[0].get())->tp_name),
                     "a torch.autograd.Function is called by its apply()");
  interpreter.stop(fmt::format("makes an object of C type {}", base->tp_name));
}

bool object_takes(Interpreter& interpreter, PyTypeObject* type, bool makes, bool has_arguments) {
  const Ref maker = type_lookup(interpreter, type, interned("__new__").get());
  const Ref initializer = type_lookup(interpreter, type, interned("__init__").get());
  const bool own_maker = type->tp_new != PyBaseObject_Type.tp_new;
  const bool own_initializer = type->tp_init != PyBaseObject_Type.tp_init;
  if (!has_arguments) return true;
  if (makes ? own_maker : own_initializer) {
    PyErr_SetString(PyExc_TypeError,
                    makes ? "object.__new__() takes exactly one argument (the type to instantiate)"
                          : "object.__init__() takes exactly one argument (the instance to initialize)");
    return false;
  }
  if (makes ? own_initializer : own_maker) return true;
  PyErr_Format(PyExc_TypeError, "%.200s() takes no arguments", type->tp_name);
  return false;
}

Ref call_type(Interpreter& interpreter, PyTypeObject* type, Arguments arguments) {
  auto* class_object = reinterpret_cast<PyObject*>(type);
  if (Py_TYPE(type) != &PyType_Type) {
    Ref meta_call = type_lookup(interpreter, Py_TYPE(type), interned("__call__").get());
    if (is_enum_class(class_object) &&
        meta_call == _PyType_Lookup(reinterpret_cast<PyTypeObject*>(well_known("enum", "EnumMeta")),
                                    interned("__call__").get())) {
      if (arguments.positional.size() != 1 || !arguments.keywords.empty())
        interpreter.stop("makes an enum class");
      const Ref member = call_real_plain(interpreter, class_object, arguments);
      if (!member) {
        PyErr_Clear();
        interpreter.stop("asks an enum class for a member that it lacks");
      }
      const Ref members = type_lookup(interpreter, type, interned("_value2member_map_").get());
      PyObject* const value = arguments.positional[0].get();
      if (members && PyDict_CheckExact(members.get()) && guards::is_constant(value)) {
        if (PyObject* found = PyDict_GetItemWithError(members.get(), value))
          interpreter.guards().require(
              interpreter.guards().dict_item(interpreter.guards().pinned(members.get()), value),
              guards::CheckKind::Identity, found);
      }
      return member;
    }
    if (meta_call && PyFunction_Check(meta_call.get())) {
      pin(interpreter, meta_call.get());
      arguments.positional.insert(arguments.positional.begin(), Ref::borrow(class_object));
      return call(interpreter, meta_call.get(), std::move(arguments));
    }
    // A class as `__call__` of the metaclass is called unbound. (typing.TypedDict has dict there.)
    if (meta_call && PyType_Check(meta_call.get()))
      return call(interpreter, pin(interpreter, meta_call.get()).get(), std::move(arguments));
    if (meta_call != _PyType_Lookup(&PyType_Type, interned("__call__").get()))
      interpreter.stop(fmt::format("calls class {}, whose metaclass has an unusual __call__", type->tp_name));
  }
  return make_instance(interpreter, type, std::move(arguments));
}

Ref make_instance(Interpreter& interpreter, PyTypeObject* type, Arguments arguments) {
  auto* class_object = reinterpret_cast<PyObject*>(type);
  if (!type->tp_new) {
    PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
    return {};
  }
  if (is_pure_type(type)) {
    if (type == &PyBytes_Type && (arguments.positional.size() > 1 || !arguments.keywords.empty()))
      interpreter.stop("makes bytes of a text with a codec that may be the program's");
    for (const Ref& value : arguments.positional) {
      refuse_own_code(interpreter, value.get(), type->tp_name);
      const bool keeps = type == &PySlice_Type && !guards::is_constant(value.get());
      if (keeps && !is_varying_number(value.get())) interpreter.stop("makes a slice of objects");
    }
    return torch_result_or_error(interpreter, class_object, arguments);
  }
  if (is_legacy_tensor_type(type)) return new_of_type(interpreter, type, arguments);
  if (PyType_IsSubtype(type, runtime::tensor_class()))
    interpreter.stop(fmt::format("makes a tensor of class {}", type->tp_name));
  Ref new_name = interned("__new__");
  Ref init_name = interned("__init__");
  if (type_lookup(interpreter, type, interned("__del__").get()))
    interpreter.stop(fmt::format("makes an object of class {}, which has a finalizer", type->tp_name));
  Ref maker = type_lookup(interpreter, type, new_name.get());
  if (!maker) interpreter.stop(fmt::format("class {} has no __new__", type->tp_name));
  Ref maker_function = Py_TYPE(maker.get()) == &PyStaticMethod_Type
                           ? Ref::steal(PyObject_GetAttrString(maker.get(), "__func__"))
                           : maker;
  pin(interpreter, class_object);
  Arguments new_arguments = arguments;
  new_arguments.positional.insert(new_arguments.positional.begin(), Ref::borrow(class_object));
  Ref object;
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_SyntaxError)))
    for (const Ref& value : arguments.positional)
      refuse_own_code(interpreter, value.get(), type->tp_name);  // takes it apart
  if (PyFunction_Check(maker_function.get())) {
    pin(interpreter, maker_function.get());
    object = call(interpreter, maker_function.get(), std::move(new_arguments));
  } else if (PyCFunction_Check(maker_function.get())) {
    object = call_c_new(interpreter, maker_function.get(), std::move(new_arguments));
  } else {
    interpreter.stop(fmt::format("class {} has an unusual __new__", type->tp_name));
  }
  if (!object || !PyObject_TypeCheck(object.get(), type)) return object;
  Ref init = type_lookup(interpreter, Py_TYPE(object.get()), init_name.get());
  if (!init) return object;
  if (PyFunction_Check(init.get())) {
    pin(interpreter, init.get());
    arguments.positional.insert(arguments.positional.begin(), object);
    Ref result = call(interpreter, init.get(), std::move(arguments));
    if (!result) return {};
    if (result != Py_None) {
      PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                   Py_TYPE(result.get())->tp_name);
      return {};
    }
    return object;
  }
  if (Py_TYPE(object.get())->tp_init == PyBaseObject_Type.tp_init) return object;
  Ref bound = Ref::steal(Py_TYPE(init.get())->tp_descr_get(init.get(), object.get(), class_object));
  if (!bound) return {};
  Ref result = call_c_method(interpreter, bound.get(), object.get(), "__init__", std::move(arguments));
  return result ? object : Ref();
}

}  // namespace oxy::eval
