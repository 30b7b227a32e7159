// Builtins that look at one object: its length, class, attributes, text or number.
#include <fmt/format.h>

#include "eval/builtin_families.h"
#include "eval/generator.h"
#include "eval/objects.h"
#include "eval/prelude.h"
#include "eval/torch_call.h"
#include "eval/traceback.h"
#include "eval/varying_number.h"
#include "guards/constants.h"

namespace oxy::eval {
namespace {

constexpr int kSharedVariable = 0x40;  // CO_FAST_CELL in co_localspluskinds, of Python 3.11 to 3.13

Ref length(Evaluator& e, Arguments& a) {
  expect(e, a, "len", 1, 1);
  PyObject* object = arg(a, 0);
  if (trace::is_trace_tensor(object))
    return torch_result(e, [&] {
      const Py_ssize_t size = PyObject_Size(object);
      return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
    });
  if (e.has_python_special(object, "__len__")) {
    return e.length_of(object);
  }
  if (e.is_external(object)) {
    if (!is_container(object))
      e.stop(fmt::format("the length of an object of type {}", Py_TYPE(object)->tp_name));
    return Ref::steal(PyLong_FromSsize_t(e.size_of(object)));
  }
  const Py_ssize_t size = PyObject_Size(object);
  return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
}

Ref is_instance(Evaluator& e, Arguments& a) {
  expect(e, a, "isinstance", 2, 2);
  Ref classes = e.materialize(arg(a, 1));
  const int result = e.instance_of(arg(a, 0), classes.get());
  return result < 0 ? Ref() : boolean(result);
}

Ref is_subclass(Evaluator& e, Arguments& a) {
  expect(e, a, "issubclass", 2, 2);
  Ref classes = e.materialize(arg(a, 1));
  const int result = e.subclass_of(arg(a, 0), classes.get());
  return result < 0 ? Ref() : boolean(result);
}

Ref attribute_name(Evaluator& e, const Arguments& a) {
  Ref name = a.positional[1];
  if (!PyUnicode_CheckExact(name.get())) e.stop("getattr() with a name that is not a str");
  PyObject* interned = name.release();
  PyUnicode_InternInPlace(&interned);
  return Ref::steal(interned);
}

Ref get_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "getattr", 2, 3);
  Ref name = attribute_name(e, a);
  Ref value = e.get_attribute(arg(a, 0), name.get());
  if (value || a.positional.size() < 3 || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return a.positional[2];
}

Ref has_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "hasattr", 2, 2);
  Ref name = attribute_name(e, a);
  Ref value = e.get_attribute(arg(a, 0), name.get());
  if (value) return boolean(true);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
  PyErr_Clear();
  return boolean(false);
}

Ref set_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "setattr", 3, 3);
  Ref name = attribute_name(e, a);
  return e.set_attribute(arg(a, 0), name.get(), arg(a, 2)) ? none() : Ref();
}

Ref delete_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "delattr", 2, 2);
  Ref name = attribute_name(e, a);
  return e.set_attribute(arg(a, 0), name.get(), nullptr) ? none() : Ref();
}

Ref is_callable(Evaluator& e, Arguments& a) {
  expect(e, a, "callable", 1, 1);
  PyObject* const object = arg(a, 0);
  e.type_lookup(Py_TYPE(object), interned("__call__").get());
  return boolean(PyCallable_Check(object));
}

Ref type_of(Evaluator& e, Arguments& a) {
  if (a.positional.size() == 3)
    e.stop("makes a class by type()", "classes that stay the same can be made outside of the function");
  expect(e, a, "type", 1, 1);
  return e.pin(reinterpret_cast<PyObject*>(e.class_seen(arg(a, 0))));
}

Ref build_class(Evaluator& e, Arguments&) {
  e.stop("defines a class", "classes that stay the same can be defined outside of the function");
}

Ref make_method(Evaluator& e, Arguments& a) {
  expect(e, a, "types.MethodType", 2, 2);
  return e.call_real(reinterpret_cast<PyObject*>(&PyMethod_Type), a);
}

Ref make_super(Evaluator& e, Arguments& a) {
  expect(e, a, "super", 0, 2);
  Ref type, self;
  if (a.positional.size() == 2) {
    type = a.positional[0];
    self = a.positional[1];
  } else {
    expect(e, a, "super", 0, 0);
    Frame& frame = calling_frame(e, "super");
    if (frame.pycode()->co_argcount == 0) e.stop("super() without a first argument");
    PyObject* names = frame.pycode()->co_localsplusnames;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "__class__") != 0) continue;
      if (const Ref& cell = e.local(frame, static_cast<int32_t>(i)); cell && PyCell_Check(cell.get()))
        type = e.read_cell(cell.get());
    }
    self = e.local(frame, 0);
    // A cell that an inner function shares, unlike a cell that is the argument itself.
    const bool shared = PyBytes_AS_STRING(frame.pycode()->co_localspluskinds)[0] & kSharedVariable;
    if (shared && self && PyCell_Check(self.get())) self = e.read_cell(self.get());
  }
  if (!type || !self) e.stop("super() outside of a method");
  e.pin(type.get());
  return Ref::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), type.get(),
                                                 self.get(), nullptr));
}

Ref make_bool(Evaluator& e, Arguments& a) {
  expect(e, a, "bool", 0, 1);
  if (a.positional.empty()) return boolean(false);
  bool error = false;
  const bool value = e.truth(arg(a, 0), &error);
  return error ? Ref() : boolean(value);
}

Ref number(Evaluator& e, const Arguments& a, const char* name, const char* special, PyTypeObject* type) {
  expect(e, a, name, 0, 2, true);
  const bool alone = a.positional.size() == 1 && a.keywords.empty();
  for (size_t i = 0; !alone && i < a.positional.size(); ++i) e.refuse_own_code(arg(a, i), name);
  for (const auto& [keyword, value] : a.keywords) e.refuse_own_code(value.get(), name);
  if (!a.positional.empty()) {
    PyObject* value = arg(a, 0);
    if (e.has_python_special(value, special)) return e.call_special(value, special, type);
    if (trace::is_trace_tensor(value))
      return torch_result(e, [&] { return e.call_real(reinterpret_cast<PyObject*>(type), a); });
    if (!guards::is_constant(value))
      e.stop(fmt::format("{}() of an object of type {}", name, Py_TYPE(value)->tp_name));
  }
  return e.call_real(reinterpret_cast<PyObject*>(type), a);
}

Ref make_int(Evaluator& e, Arguments& a) {
  return number(e, a, "int", "__int__", &PyLong_Type);
}

Ref make_float(Evaluator& e, Arguments& a) {
  return number(e, a, "float", "__float__", &PyFloat_Type);
}

Ref make_str(Evaluator& e, Arguments& a) {
  expect(e, a, "str", 0, 1);
  if (a.positional.empty()) return Ref::steal(PyUnicode_FromString(""));
  return e.to_text(arg(a, 0), false);
}

Ref make_repr(Evaluator& e, Arguments& a) {
  expect(e, a, "repr", 1, 1);
  return e.to_text(arg(a, 0), true);
}

[[noreturn]] void stop_at_address(Evaluator& e, const char* asks) {
  e.stop(fmt::format("{} of an object that may be another one at each call", asks),
         "modules, their parameters, functions and classes can be asked for it");
}

// The hash follows from what the object is made of, and all of that is guarded once it is admitted.
bool hashes_by_value(PyObject* object) {
  if (guards::is_constant(object)) return !guards::is_nan(object);
  if (!PyTuple_CheckExact(object))
    return guards::is_value(object) || is_value_object(object) || guards::is_numpy_scalar(object);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!hashes_by_value(PyTuple_GET_ITEM(object, i))) return false;
  return true;
}

// What hash() makes of the number that `__hash__` gives.
Ref hash_of_number(PyObject* number) {
  Py_ssize_t word = PyLong_AsSsize_t(number);
  if (word == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    word = PyObject_Hash(number);
  }
  return Ref::steal(PyLong_FromSsize_t(word == -1 ? -2 : word));
}

Ref hash_of(Evaluator& e, Arguments& a) {
  expect(e, a, "hash", 1, 1);
  PyObject* const object = arg(a, 0);
  if (e.hashes_itself(object)) {
    const Ref value = e.call_special(object, "__hash__", &PyLong_Type);
    return value ? hash_of_number(e.constant_of(value.get()).get()) : Ref();
  }
  const Ref key = e.key_of(object);
  PyObject* hashed = key.get();
  const bool raises = Py_TYPE(hashed)->tp_hash == PyObject_HashNotImplemented;
  if (!raises && !hashes_by_value(hashed)) {
    const bool by_address = trace::is_trace_tensor(object) || is_identity_object(object) ||
                            Py_TYPE(object)->tp_hash == PyBaseObject_Type.tp_hash;
    if (!by_address)
      e.stop(fmt::format("asks for the hash of an object of type {}", Py_TYPE(object)->tp_name));
    hashed = e.identified(object);
    if (!hashed) stop_at_address(e, "asks for the hash");
  }
  const Py_hash_t value = PyObject_Hash(hashed);
  return value == -1 ? Ref() : Ref::steal(PyLong_FromSsize_t(value));
}

Ref vars_of(Evaluator& e, Arguments& a) {
  expect(e, a, "vars", 1, 1);
  Ref dict = e.get_attribute(arg(a, 0), interned("__dict__").get());
  if (!dict && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_SetString(PyExc_TypeError, "vars() argument must have __dict__ attribute");
  return dict;
}

Ref globals_of(Evaluator& e, Arguments& a) {
  expect(e, a, "globals", 0, 0);
  return e.pin(calling_frame(e, "globals").globals.get());
}

Ref identity_of(Evaluator& e, Arguments& a) {
  expect(e, a, "id", 1, 1);
  PyObject* const object = e.identified(arg(a, 0));
  if (!object) stop_at_address(e, "asks for the id()");
  return Ref::steal(PyLong_FromVoidPtr(object));
}

Ref deep_copy(Evaluator& e, Arguments& a) {
  expect(e, a, "copy.deepcopy", 1, 1);
  std::unordered_map<PyObject*, Ref> memo;
  return e.deep_copy(arg(a, 0), memo);
}

// The attribute stays the object that it is, and so does what it holds if it is a dict. None: there is none.
Ref attribute_that_stays(Evaluator& e, PyObject* object, const char* name) {
  Ref value = e.get_attribute(object, interned(name).get());
  if (!value) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
    PyErr_Clear();
    return Ref::borrow(Py_None);
  }
  // Others could be changed by who finds them in the signature.
  const auto stays = [&e](PyObject* part) {
    if (guards::is_constant(part)) return;
    if (!is_identity_object(part) && !is_type_alias(part)) e.stop("asks for a signature that holds objects");
    if (e.is_external(part)) e.require_identity(part);
  };
  if (PyTuple_Check(value.get())) {
    const Ref items = e.drain(value.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) stays(PyList_GET_ITEM(items.get(), i));
    return value;
  }
  if (!PyDict_Check(value.get())) {
    if (e.is_external(value.get())) e.require_identity(value.get());
    return value;
  }
  const Ref items = e.materialize(value.get());
  PyObject *key = nullptr, *item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(items.get(), &at, &key, &item);) stays(item);
  return value;
}

// What the parameters of a function are read from. False: a Python error is set.
bool require_parameters(Evaluator& e, PyObject* function) {
  constexpr int kDeepest = 20;
  for (int depth = 0; depth < kDeepest; ++depth) {
    if (!PyFunction_Check(function)) e.stop("asks for the signature of an object");
    if (e.is_known_by_code(function)) e.require_identity(function);
    for (const char* name : {"__code__", "__defaults__", "__kwdefaults__", "__annotations__"})
      if (!attribute_that_stays(e, function, name)) return false;
    if (attribute_that_stays(e, function, "__signature__") != Py_None)
      e.stop("asks for the signature of a function that has another one");
    const Ref wrapped = attribute_that_stays(e, function, "__wrapped__");
    if (!wrapped || wrapped == Py_None) return static_cast<bool>(wrapped);
    function = wrapped.get();
  }
  e.stop("asks for the signature of a function that wraps itself");
}

Ref signature(Evaluator& e, Arguments& a) {
  expect(e, a, "inspect.signature", 1, 1);
  PyObject* function = PyMethod_Check(arg(a, 0)) ? PyMethod_GET_FUNCTION(arg(a, 0)) : arg(a, 0);
  if (!require_parameters(e, function)) return {};
  return e.call_real(well_known("inspect", "signature"), a);
}

constexpr BuiltinEntry kTable[] = {
    {"builtins", "len", &length},
    {"builtins", "isinstance", &is_instance},
    {"builtins", "issubclass", &is_subclass},
    {"builtins", "getattr", &get_attr},
    {"builtins", "hasattr", &has_attr},
    {"builtins", "setattr", &set_attr},
    {"builtins", "delattr", &delete_attr},
    {"builtins", "callable", &is_callable},
    {"types", "MethodType", &make_method},
    {"builtins", "type", &type_of},
    {"builtins", "__build_class__", &build_class},
    {"builtins", "super", &make_super},
    {"builtins", "bool", &make_bool},
    {"builtins", "int", &make_int},
    {"builtins", "float", &make_float},
    {"builtins", "str", &make_str},
    {"builtins", "repr", &make_repr},
    {"builtins", "hash", &hash_of},
    {"builtins", "vars", &vars_of},
    {"builtins", "globals", &globals_of},
    {"builtins", "id", &identity_of},
    {"inspect", "signature", &signature},
    {"copy", "deepcopy", &deep_copy},
};

}  // namespace

std::span<const BuiltinEntry> object_builtins() {
  return kTable;
}

}  // namespace oxy::eval
