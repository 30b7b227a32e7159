// Builtins that look at one object: its length, class, attributes, text or number.
#include <fmt/format.h>

#include "eval/builtins/builtin_families.h"
#include "eval/externals/admission.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/identity.h"
#include "eval/externals/own_code.h"
#include "eval/externals/type_lookup.h"
#include "eval/externals/variables.h"
#include "eval/numbers/float_of_data.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/attribute_writes.h"
#include "eval/objects/attributes.h"
#include "eval/objects/containers.h"
#include "eval/objects/copies.h"
#include "eval/objects/instance_checks.h"
#include "eval/objects/operators.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/torch/torch_call.h"
#include "eval/treatment/prelude.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {
namespace {

constexpr int kSharedVariable = 0x40;  // CO_FAST_CELL in co_localspluskinds, of Python 3.11 to 3.13

bool has_symbolic_length(PyObject* tensor) {
  const at::Tensor& value = runtime::tensor_of(tensor);
  return value.dim() > 0 && value.sym_size(0).is_symbolic();
}

Ref length(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "len", 1, 1);
  PyObject* object = arg(a, 0);
  if (trace::is_trace_tensor(object) && has_symbolic_length(object))
    return integer(interpreter, torch_api::expression_of(runtime::tensor_of(object).sym_size(0)));
  if (trace::is_trace_tensor(object))
    return torch_result(interpreter, [&] {
      const Py_ssize_t size = PyObject_Size(object);
      return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
    });
  if (has_python_special(interpreter, object, "__len__")) {
    return length_of(interpreter, object);
  }
  if (interpreter.externals.is_external(object)) {
    if (!is_container(object))
      interpreter.stop(fmt::format("the length of an object of type {}", Py_TYPE(object)->tp_name));
    return Ref::steal(PyLong_FromSsize_t(size_of(interpreter, object)));
  }
  const Py_ssize_t size = PyObject_Size(object);
  return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
}

Ref is_instance(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "isinstance", 2, 2);
  Ref classes = materialize(interpreter, arg(a, 1));
  const int result = instance_of(interpreter, arg(a, 0), classes.get());
  return result < 0 ? Ref() : boolean(result);
}

Ref is_subclass(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "issubclass", 2, 2);
  Ref classes = materialize(interpreter, arg(a, 1));
  const int result = subclass_of(interpreter, arg(a, 0), classes.get());
  return result < 0 ? Ref() : boolean(result);
}

Ref attribute_name(Interpreter& interpreter, const Arguments& a) {
  Ref name = a.positional[1];
  if (!PyUnicode_CheckExact(name.get())) interpreter.stop("getattr() with a name that is not a str");
  PyObject* interned = name.release();
  PyUnicode_InternInPlace(&interned);
  return Ref::steal(interned);
}

Ref get_attr(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "getattr", 2, 3);
  Ref name = attribute_name(interpreter, a);
  Ref value = get_attribute(interpreter, arg(a, 0), name.get());
  if (value || a.positional.size() < 3 || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return a.positional[2];
}

Ref has_attr(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "hasattr", 2, 2);
  Ref name = attribute_name(interpreter, a);
  Ref value = get_attribute(interpreter, arg(a, 0), name.get());
  if (value) return boolean(true);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
  PyErr_Clear();
  return boolean(false);
}

Ref set_attr(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "setattr", 3, 3);
  Ref name = attribute_name(interpreter, a);
  return set_attribute(interpreter, arg(a, 0), name.get(), arg(a, 2)) ? none() : Ref();
}

Ref delete_attr(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "delattr", 2, 2);
  Ref name = attribute_name(interpreter, a);
  return set_attribute(interpreter, arg(a, 0), name.get(), nullptr) ? none() : Ref();
}

Ref is_callable(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "callable", 1, 1);
  PyObject* const object = arg(a, 0);
  type_lookup(interpreter, Py_TYPE(object), interned("__call__").get());
  return boolean(PyCallable_Check(object));
}

Ref type_of(Interpreter& interpreter, Arguments& a) {
  if (a.positional.size() == 3)
    interpreter.stop("makes a class by type()",
                     "classes that stay the same can be made outside of the function");
  expect(interpreter, a, "type", 1, 1);
  return pin(interpreter, reinterpret_cast<PyObject*>(class_seen(interpreter, arg(a, 0))));
}

Ref build_class(Interpreter& interpreter, Arguments&) {
  interpreter.stop("defines a class", "classes that stay the same can be defined outside of the function");
}

Ref make_method(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "types.MethodType", 2, 2);
  return call_real(interpreter, reinterpret_cast<PyObject*>(&PyMethod_Type), a);
}

Ref make_super(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "super", 0, 2);
  Ref type, self;
  if (a.positional.size() == 2) {
    type = a.positional[0];
    self = a.positional[1];
  } else {
    expect(interpreter, a, "super", 0, 0);
    Frame& frame = calling_frame(interpreter, "super");
    if (frame.pycode()->co_argcount == 0) interpreter.stop("super() without a first argument");
    PyObject* names = frame.pycode()->co_localsplusnames;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "__class__") != 0) continue;
      if (const Ref& cell = local(interpreter, frame, static_cast<int32_t>(i));
          cell && PyCell_Check(cell.get()))
        type = read_cell(interpreter, cell.get());
    }
    self = local(interpreter, frame, 0);
    // If an inner function shares the variable, the local is its cell. Otherwise a cell is the argument
    // itself.
    const bool shared = PyBytes_AS_STRING(frame.pycode()->co_localspluskinds)[0] & kSharedVariable;
    if (shared && self && PyCell_Check(self.get())) self = read_cell(interpreter, self.get());
  }
  if (!type || !self) interpreter.stop("super() outside of a method");
  pin(interpreter, type.get());
  return Ref::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), type.get(),
                                                 self.get(), nullptr));
}

Ref make_bool(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "bool", 0, 1);
  if (a.positional.empty()) return boolean(false);
  bool error = false;
  const bool value = truth(interpreter, arg(a, 0), &error);
  return error ? Ref() : boolean(value);
}

Ref number(Interpreter& interpreter, const Arguments& a, const char* name, const char* special,
           PyTypeObject* type) {
  expect(interpreter, a, name, 0, 2, true);
  const bool alone = a.positional.size() == 1 && a.keywords.empty();
  for (size_t i = 0; !alone && i < a.positional.size(); ++i) refuse_own_code(interpreter, arg(a, i), name);
  for (const auto& [keyword, value] : a.keywords) refuse_own_code(interpreter, value.get(), name);
  if (!a.positional.empty()) {
    PyObject* value = arg(a, 0);
    if (has_python_special(interpreter, value, special))
      return call_special(interpreter, value, special, type);
    // The number may be a symbol, which int() of C code cannot give.
    if (trace::is_trace_tensor(value) && alone && type == &PyLong_Type && interpreter.numbers.symbols &&
        at::isIntegralType(runtime::tensor_of(value).scalar_type(), /*includeBool=*/false))
      return torch_result(interpreter,
                          [&] { return Ref::steal(PyObject_CallMethod(value, "item", nullptr)); });
    if (trace::is_trace_tensor(value) && alone)
      if (auto computed = converted_item(interpreter, type, runtime::tensor_of(value))) return *computed;
    if (trace::is_trace_tensor(value))
      return torch_result(interpreter,
                          [&] { return call_real(interpreter, reinterpret_cast<PyObject*>(type), a); });
    if (!guards::is_constant(value))
      interpreter.stop(fmt::format("{}() of an object of type {}", name, Py_TYPE(value)->tp_name));
  }
  return call_real(interpreter, reinterpret_cast<PyObject*>(type), a);
}

Ref make_int(Interpreter& interpreter, Arguments& a) {
  return number(interpreter, a, "int", "__int__", &PyLong_Type);
}

Ref make_float(Interpreter& interpreter, Arguments& a) {
  return number(interpreter, a, "float", "__float__", &PyFloat_Type);
}

Ref make_str(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "str", 0, 1);
  if (a.positional.empty()) return Ref::steal(PyUnicode_FromString(""));
  return to_text(interpreter, arg(a, 0), false);
}

Ref make_repr(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "repr", 1, 1);
  return to_text(interpreter, arg(a, 0), true);
}

Ref make_formatted(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "format", 1, 2);
  const Ref spec = a.positional.size() == 2 ? constant_of(interpreter, arg(a, 1)) : Ref();
  if (spec && !PyUnicode_Check(spec.get())) {
    PyErr_Format(PyExc_TypeError, "format() argument 2 must be str, not %.50s", Py_TYPE(spec.get())->tp_name);
    return {};
  }
  return format(interpreter, arg(a, 0), 0, spec.get());
}

[[noreturn]] void stop_at_address(Interpreter& interpreter, const char* asks) {
  interpreter.stop(fmt::format("{} of an object that may be another one at each call", asks),
                   "modules, their parameters, functions and classes can be asked for it");
}

// Whether the hash depends only on the value of the object, which is guarded at admission.
bool hashes_by_value(PyObject* object) {
  if (guards::is_constant(object)) return !guards::is_nan(object);
  if (!PyTuple_CheckExact(object))
    return guards::is_value(object) || is_value_object(object) || guards::is_numpy_scalar(object);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!hashes_by_value(PyTuple_GET_ITEM(object, i))) return false;
  return true;
}

// The result of hash() for the number that a `__hash__` gave.
Ref hash_of_number(PyObject* number) {
  Py_ssize_t word = PyLong_AsSsize_t(number);
  if (word == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    word = PyObject_Hash(number);
  }
  return Ref::steal(PyLong_FromSsize_t(word == -1 ? -2 : word));
}

Ref hash_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "hash", 1, 1);
  PyObject* const object = arg(a, 0);
  if (hashes_itself(interpreter, object)) {
    const Ref value = call_special(interpreter, object, "__hash__", &PyLong_Type);
    return value ? hash_of_number(constant_of(interpreter, value.get()).get()) : Ref();
  }
  const Ref key = key_of(interpreter, object);
  PyObject* hashed = key.get();
  const bool raises = Py_TYPE(hashed)->tp_hash == PyObject_HashNotImplemented;
  if (!raises && !hashes_by_value(hashed)) {
    const bool by_address = trace::is_trace_tensor(object) || is_identity_object(object) ||
                            Py_TYPE(object)->tp_hash == PyBaseObject_Type.tp_hash;
    if (!by_address)
      interpreter.stop(fmt::format("asks for the hash of an object of type {}", Py_TYPE(object)->tp_name));
    hashed = identified(interpreter, object);
    if (!hashed) stop_at_address(interpreter, "asks for the hash");
  }
  const Py_hash_t value = PyObject_Hash(hashed);
  return value == -1 ? Ref() : Ref::steal(PyLong_FromSsize_t(value));
}

Ref vars_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "vars", 1, 1);
  Ref dict = get_attribute(interpreter, arg(a, 0), interned("__dict__").get());
  if (!dict && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_SetString(PyExc_TypeError, "vars() argument must have __dict__ attribute");
  return dict;
}

Ref globals_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "globals", 0, 0);
  return pin(interpreter, calling_frame(interpreter, "globals").globals.get());
}

Ref identity_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "id", 1, 1);
  PyObject* const object = identified(interpreter, arg(a, 0));
  if (!object) stop_at_address(interpreter, "asks for the id()");
  return Ref::steal(PyLong_FromVoidPtr(object));
}

Ref deep_copy(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "copy.deepcopy", 1, 1);
  std::unordered_map<PyObject*, Ref> memo;
  return deep_copy(interpreter, arg(a, 0), memo);
}

// The attribute, guarded by identity; if it is a dict, its contents are guarded, too. None if the object
// lacks it.
Ref attribute_that_stays(Interpreter& interpreter, PyObject* object, const char* name) {
  Ref value = get_attribute(interpreter, object, interned(name).get());
  if (!value) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
    PyErr_Clear();
    return Ref::borrow(Py_None);
  }
  // Mutable objects could be changed through the signature.
  const auto stays = [&interpreter](PyObject* part) {
    if (guards::is_constant(part)) return;
    if (!is_identity_object(part) && !is_type_alias(part))
      interpreter.stop("asks for a signature that holds objects");
    if (interpreter.externals.is_external(part)) require_identity(interpreter, part);
  };
  if (PyTuple_Check(value.get())) {
    const Ref items = drain(interpreter, value.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) stays(PyList_GET_ITEM(items.get(), i));
    return value;
  }
  if (!PyDict_Check(value.get())) {
    if (interpreter.externals.is_external(value.get())) require_identity(interpreter, value.get());
    return value;
  }
  const Ref items = materialize(interpreter, value.get());
  PyObject *key = nullptr, *item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(items.get(), &at, &key, &item);) stays(item);
  return value;
}

// Guards everything from which inspect reads the parameters of a function. False: a Python error is set.
bool require_parameters(Interpreter& interpreter, PyObject* function) {
  constexpr int kDeepest = 20;
  for (int depth = 0; depth < kDeepest; ++depth) {
    if (!PyFunction_Check(function)) interpreter.stop("asks for the signature of an object");
    if (interpreter.externals.is_known_by_code(function)) require_identity(interpreter, function);
    for (const char* name : {"__code__", "__defaults__", "__kwdefaults__", "__annotations__"})
      if (!attribute_that_stays(interpreter, function, name)) return false;
    if (attribute_that_stays(interpreter, function, "__signature__") != Py_None)
      interpreter.stop("asks for the signature of a function that has another one");
    const Ref wrapped = attribute_that_stays(interpreter, function, "__wrapped__");
    if (!wrapped || wrapped == Py_None) return static_cast<bool>(wrapped);
    function = wrapped.get();
  }
  interpreter.stop("asks for the signature of a function that wraps itself");
}

Ref signature(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "inspect.signature", 1, 1);
  PyObject* function = PyMethod_Check(arg(a, 0)) ? PyMethod_GET_FUNCTION(arg(a, 0)) : arg(a, 0);
  if (!require_parameters(interpreter, function)) return {};
  return call_real(interpreter, well_known("inspect", "signature"), a);
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
    {"builtins", "format", &make_formatted},
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
