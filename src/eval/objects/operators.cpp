// Arithmetic and formatting.
#include "eval/objects/operators.h"

#include <fmt/format.h>
#include <torch/csrc/Size.h>

#include <array>

#include "eval/externals/external_containers.h"
#include "eval/externals/own_code.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/numpy_scalars.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/symbolic_size.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/attributes.h"
#include "eval/objects/container_methods.h"
#include "eval/objects/merging.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/torch/torch_call.h"
#include "guards/constants.h"

namespace oxy::eval {

using bytecode::BinaryKind;

namespace {

struct BinaryEntry {
  const char* symbol;
  const char* method;
  const char* reflected;
  const char* in_place;
  PyObject* (*run)(PyObject*, PyObject*);
  PyObject* (*run_in_place)(PyObject*, PyObject*);
};

PyObject* power(PyObject* a, PyObject* b) {
  return PyNumber_Power(a, b, Py_None);
}
PyObject* in_place_power(PyObject* a, PyObject* b) {
  return PyNumber_InPlacePower(a, b, Py_None);
}

// In the order of BinaryKind.
constexpr BinaryEntry kBinary[] = {
    {"+", "__add__", "__radd__", "__iadd__", &PyNumber_Add, &PyNumber_InPlaceAdd},
    {"&", "__and__", "__rand__", "__iand__", &PyNumber_And, &PyNumber_InPlaceAnd},
    {"//", "__floordiv__", "__rfloordiv__", "__ifloordiv__", &PyNumber_FloorDivide,
     &PyNumber_InPlaceFloorDivide},
    {"<<", "__lshift__", "__rlshift__", "__ilshift__", &PyNumber_Lshift, &PyNumber_InPlaceLshift},
    {"@", "__matmul__", "__rmatmul__", "__imatmul__", &PyNumber_MatrixMultiply,
     &PyNumber_InPlaceMatrixMultiply},
    {"*", "__mul__", "__rmul__", "__imul__", &PyNumber_Multiply, &PyNumber_InPlaceMultiply},
    {"%", "__mod__", "__rmod__", "__imod__", &PyNumber_Remainder, &PyNumber_InPlaceRemainder},
    {"|", "__or__", "__ror__", "__ior__", &PyNumber_Or, &PyNumber_InPlaceOr},
    {"** or pow()", "__pow__", "__rpow__", "__ipow__", &power, &in_place_power},
    {">>", "__rshift__", "__rrshift__", "__irshift__", &PyNumber_Rshift, &PyNumber_InPlaceRshift},
    {"-", "__sub__", "__rsub__", "__isub__", &PyNumber_Subtract, &PyNumber_InPlaceSubtract},
    {"/", "__truediv__", "__rtruediv__", "__itruediv__", &PyNumber_TrueDivide, &PyNumber_InPlaceTrueDivide},
    {"^", "__xor__", "__rxor__", "__ixor__", &PyNumber_Xor, &PyNumber_InPlaceXor},
};

// Whether the C code of the left operand changes it in place before any other method is asked.
bool changes_itself(const BinaryEntry& entry, PyObject* left, PyObject* right) {
  // Concatenation of sequences comes last, except for subclasses. Repetition always comes last.
  const bool is_sequence = PyList_Check(left) || is_deque_type(native_base(Py_TYPE(left)));
  const bool comes_last = is_sequence && (entry.run == &PyNumber_Multiply || !is_python_class(Py_TYPE(left)));
  if (comes_last || !is_container(left) || PyTuple_Check(left)) return false;
  if (PyAnySet_Check(left) && !PyAnySet_Check(right)) return false;
  return _PyType_Lookup(Py_TYPE(left), interned(entry.in_place).get()) != nullptr;
}

}  // namespace

// A program may replace an operator in the class of tensors.
void guard_tensor_special(Interpreter& interpreter, PyObject* object, const char* method) {
  if (trace::is_trace_tensor(object)) type_lookup(interpreter, Py_TYPE(object), interned(method).get());
}

namespace {

// An operand of an operator with a torch.Size. The items of a tuple may vary.
Ref size_operand(Interpreter& interpreter, PyObject* operand) {
  if (has_varying_part(operand)) return Ref::borrow(operand);
  return PyTuple_Check(operand) ? materialize(interpreter, operand)
                                : known(interpreter, operand, "an operator");
}

// Whether one is a torch.Size, and the other a tuple with items that vary.
bool joins_varying_size(PyObject* left, PyObject* right) {
  const auto varies = [](PyObject* operand) {
    bool found = false;
    for (Py_ssize_t i = 0; PyTuple_CheckExact(operand) && i < PyTuple_GET_SIZE(operand); ++i)
      found |= is_varying_number(PyTuple_GET_ITEM(operand, i));
    return found;
  };
  return (THPSize_Check(left) && varies(right)) || (THPSize_Check(right) && varies(left));
}

}  // namespace

Ref binary(Interpreter& interpreter, BinaryKind kind, bool in_place, PyObject* left, PyObject* right) {
  const BinaryEntry& entry = kBinary[static_cast<size_t>(kind)];
  auto run = in_place ? entry.run_in_place : entry.run;
  if (is_varying_number(left) || is_varying_number(right)) {
    if (std::optional<Ref> result = varying_arithmetic(interpreter, kind, in_place, left, right))
      return *result;
    const bool is_number_before_tensor = trace::is_trace_tensor(right) && !trace::is_trace_tensor(left);
    if (interpreter.torch_calls && is_number_before_tensor && is_symbolic_integer(interpreter, left)) {
      guard_tensor_special(interpreter, right, entry.reflected);
      const Ref number = plain(interpreter, left, "an operator", ShownAs::Symbols);
      return torch_result(interpreter, "operator", entry.method, {number.get(), right}, [&] {
        return Ref::steal(PyObject_CallMethod(right, entry.reflected, "O", number.get()));
      });
    }
    if (depends_on_data(interpreter, left) && trace::is_trace_tensor(right)) {
      guard_tensor_special(interpreter, right, entry.reflected);
      const Ref number = plain(interpreter, left, "an operator", ShownAs::Symbols);
      return torch_result(interpreter, [&] {
        return Ref::steal(PyObject_CallMethod(right, entry.reflected, "O", number.get()));
      });
    }
    // The tensor's operator takes a symbol.
    if (!trace::is_trace_tensor(left) || !is_symbolic_integer(interpreter, right)) {
      const Ref a = constant_of(interpreter, left), b = constant_of(interpreter, right);
      return binary(interpreter, kind, in_place, a.get(), b.get());
    }
  }
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    if (!trace::is_trace_tensor(left) && has_python_special(interpreter, left, entry.method))
      interpreter.stop("an operator of a user's class is given a tensor");
    guard_tensor_special(interpreter, left, entry.method);
    guard_tensor_special(interpreter, left, entry.in_place);
    guard_tensor_special(interpreter, right, entry.reflected);
    // The left operand's class performs the operator, and torch.SymInt has none.
    Ref a = plain(interpreter, left, "an operator"),
        b = plain(interpreter, right, "an operator", ShownAs::Symbols);
    if (in_place && a != left) interpreter.stop("changes a container in place by an operator with a tensor");
    // If the left operand is a number, `+=` is a plain addition.
    const bool changes_left = in_place && !guards::is_constant(a.get());
    return torch_result(interpreter, "operator", changes_left ? entry.in_place : entry.method,
                        {a.get(), b.get()}, [&] { return Ref::steal(run(a.get(), b.get())); });
  }
  if (has_varying_part(left) || has_varying_part(right) || joins_varying_size(left, right))
    return run_on_sizes(interpreter, size_operand(interpreter, left).get(),
                        size_operand(interpreter, right).get(), run);
  if (guards::is_constant(left) && guards::is_constant(right)) return Ref::steal(run(left, right));
  const std::array<PyObject*, 2> operands = {left, right};
  if (auto result = with_scalars(interpreter, operands, [&] { return Ref::steal(run(left, right)); }))
    return *result;
  auto try_method = [&](PyObject* self, const char* name, PyObject* other) -> Ref {
    if (!has_python_special(interpreter, self, name)) return Ref::borrow(Py_NotImplemented);
    Ref method = special_method(interpreter, self, name);
    return method ? call_positional(interpreter, method.get(), {Ref::borrow(other)}) : Ref();
  };
  const bool is_derived = Py_TYPE(left) != Py_TYPE(right) && PyType_IsSubtype(Py_TYPE(right), Py_TYPE(left));
  if (is_derived && (has_python_special(interpreter, left, entry.method) ||
                     has_python_special(interpreter, left, entry.reflected)))
    for (PyObject* operand : {left, right})
      if (finds_attributes_itself(interpreter, reinterpret_cast<PyObject*>(Py_TYPE(operand))))
        interpreter.stop("an operator of a class whose metaclass finds its attributes");
  const bool reflected_first = is_derived && has_python_special(interpreter, right, entry.reflected) &&
                               is_overridden(Py_TYPE(right), Py_TYPE(left), entry.reflected);
  if (in_place) {
    Ref result = try_method(left, entry.in_place, right);
    if (result != Py_NotImplemented) return result;
  }
  // `text % value` takes any value.
  const bool formats =
      kind == BinaryKind::Remainder && !reflected_first &&
      (PyUnicode_CheckExact(left) || PyBytes_CheckExact(left) || PyByteArray_CheckExact(left));
  const bool asks = !formats && !(in_place && changes_itself(entry, left, right));
  if (asks && reflected_first) {
    Ref result = try_method(right, entry.reflected, left);
    if (result != Py_NotImplemented) return result;
  }
  if (asks) {
    Ref result = try_method(left, entry.method, right);
    if (result != Py_NotImplemented) return result;
  }
  const bool is_first_in_c = (PyAnySet_Check(left) && PyAnySet_Check(right)) ||
                             (kind == BinaryKind::Or && PyDict_Check(left) && PyDict_Check(right));
  if (asks && !reflected_first && is_first_in_c && !has_python_special(interpreter, left, entry.method) &&
      has_python_special(interpreter, right, entry.reflected))
    interpreter.stop("an operator that C code does not leave to the other operand");
  if (asks && !reflected_first && Py_TYPE(left) != Py_TYPE(right)) {
    Ref result = try_method(right, entry.reflected, left);
    if (result != Py_NotImplemented) return result;
  }
  if (asks && (has_python_special(interpreter, left, entry.method) ||
               has_python_special(interpreter, right, entry.reflected))) {
    const auto has_in_c = [&](PyObject* operand, const char* name) {
      PyObject* const found = _PyType_Lookup(Py_TYPE(operand), interned(name).get());
      return found && found != Py_None && !has_python_special(interpreter, operand, name);
    };
    // CPython would ask C code of the operands next.
    if (is_container(left) || is_container(right) || has_in_c(left, entry.method) ||
        has_in_c(right, entry.reflected))
      interpreter.stop("an operator that neither operand's class implements");
    std::string symbol = entry.symbol;
    if (in_place) symbol = kind == BinaryKind::Power ? "**=" : symbol + "=";
    PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %.100s: '%.100s' and '%.100s'",
                 symbol.c_str(), Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
    return {};
  }
  // A class with this method has a number slot, which goes before those of sequences.
  if (in_place && is_container(left) && asks && has_python_special(interpreter, left, entry.reflected))
    interpreter.stop("changes in place an object whose class has a reflected operator");
  if (in_place && is_container(left)) {
    if (kind == BinaryKind::Multiply && !(guards::is_constant(right) && PyLong_Check(right)))
      interpreter.stop("repeats a container as often as no int says");
    Arguments arguments{{Ref::borrow(right)}, {}};
    if (auto result = interpreter.externals.is_external(left)
                          ? call_container_method(interpreter, left, entry.in_place, arguments)
                          : merge_into(interpreter, left, entry.in_place, arguments))
      return std::move(*result);
  }
  if (kind == BinaryKind::Multiply)  // C code would call `__index__` for the count of repetitions
    for (PyObject* operand : {left, right})
      if (has_python_special(interpreter, operand, "__index__"))
        interpreter.stop("repeats a sequence as often as an object says");
  auto shallow = [&](PyObject* object) -> Ref {
    if (is_coroutine(object)) interpreter.stop("an operator is given a coroutine");
    if (is_generator(object)) interpreter.stop("an operator is given a generator");
    if (kind == BinaryKind::Remainder && object == right) {
      refuse_own_code(interpreter, object, "%");
      if (formats) plain(interpreter, object, "%");
    }
    // The result is of the class of one of the operands.
    if (kind == BinaryKind::Or && PyDict_Check(object) && !PyDict_CheckExact(object) &&
        (interpreter.externals.is_external(object) || !is_dict_like(object)))
      interpreter.stop(fmt::format("an operator is given an object of type {}", Py_TYPE(object)->tp_name));
    Ref copy = materialize(interpreter, object);
    if (kind == BinaryKind::Remainder && Py_TYPE(copy.get()) != Py_TYPE(object))
      interpreter.stop(fmt::format("an operator is given an object of type {}", Py_TYPE(object)->tp_name));
    // CPython has only one empty tuple.
    const bool is_empty = PyTuple_CheckExact(copy.get()) && PyTuple_GET_SIZE(copy.get()) == 0;
    if (interpreter.externals.is_external(copy.get()) && !is_empty && !is_identity_object(copy.get()))
      interpreter.stop(fmt::format("an operator is given an object of type {}", Py_TYPE(object)->tp_name));
    return copy;
  };
  Ref a = shallow(left), b = shallow(right);
  Ref result = Ref::steal(run(a.get(), b.get()));
  if (!result && (Py_TYPE(a.get()) != Py_TYPE(left) || Py_TYPE(b.get()) != Py_TYPE(right))) {
    PyErr_Clear();
    interpreter.stop("an operator raises, given an object of a subclass");  // the error names the class
  }
  return result;
}

Ref unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand) {
  using bytecode::Op;
  const char* name = op == Op::UnaryNegative ? "__neg__" : op == Op::UnaryInvert ? "__invert__" : "__pos__";
  auto run = op == Op::UnaryNegative ? &PyNumber_Negative
             : op == Op::UnaryInvert ? &PyNumber_Invert
                                     : &PyNumber_Positive;
  if (is_varying_number(operand)) {
    if (std::optional<Ref> result = varying_unary(interpreter, op, operand)) return *result;
    return unary(interpreter, op, constant_of(interpreter, operand).get());
  }
  if (trace::is_trace_tensor(operand)) {
    guard_tensor_special(interpreter, operand, name);
    return torch_result(interpreter, "operator", name, {operand}, [&] { return Ref::steal(run(operand)); });
  }
  const std::array<PyObject*, 1> operands = {operand};
  if (auto result = with_scalars(interpreter, operands, [&] { return Ref::steal(run(operand)); }))
    return *result;
  if (has_python_special(interpreter, operand, name)) {
    Ref method = special_method(interpreter, operand, name);
    return method ? call_positional(interpreter, method.get(), {}) : Ref();
  }
  if (interpreter.externals.is_external(operand) && !is_identity_object(operand))
    interpreter.stop(fmt::format("an operator is given an object of type {}", Py_TYPE(operand)->tp_name));
  return Ref::steal(run(operand));
}

namespace {

// Guards the names in the texts of classes and functions. False: a Python error is set.
bool rely_on_names(Interpreter& interpreter, PyObject* value) {
  if (PyModule_Check(value)) interpreter.stop("the text of a module");
  const bool is_python_class =
      PyType_Check(value) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(value), Py_TPFLAGS_HEAPTYPE);
  if (!is_python_class && !PyFunction_Check(value)) return true;
  constexpr std::array<const char*, 3> kNames = {"__qualname__", "__name__", "__module__"};
  return std::ranges::all_of(kNames, [&](const char* name) {
    return static_cast<bool>(get_attribute(interpreter, value, interned(name).get()));
  });
}

}  // namespace

Ref to_text(Interpreter& interpreter, PyObject* value, bool repr) {
  if (is_varying_number(value)) return to_text(interpreter, constant_of(interpreter, value).get(), repr);
  const bool exception = PyExceptionInstance_Check(value) && !interpreter.externals.is_external(value) &&
                         !has_python_special(interpreter, value, repr ? "__repr__" : "__str__");
  if (exception) {
    // The text of an exception contains the texts of its arguments.
    plain(interpreter, exception_arguments(value).get(), "the text of an exception");
  }
  if ((is_enum_member(value) || PyType_Check(value)) &&
      has_python_special(interpreter, value, repr ? "__repr__" : "__str__"))
    return call_special(interpreter, value, repr ? "__repr__" : "__str__", &PyUnicode_Type);
  if (!rely_on_names(interpreter, exception ? reinterpret_cast<PyObject*>(Py_TYPE(value)) : value)) return {};
  if (exception || guards::is_constant(value) || is_value_object(value) || is_identity_object(value))
    return torch_result(interpreter,
                        [&] { return Ref::steal(repr ? PyObject_Repr(value) : PyObject_Str(value)); });
  if (trace::is_trace_tensor(value)) interpreter.stop("prints a tensor", "the text depends on data");
  if (!repr && has_python_special(interpreter, value, "__str__"))
    return call_special(interpreter, value, "__str__", &PyUnicode_Type);
  // A C type may have a str() of its own, which does not call repr().
  const bool is_representation = repr || Py_TYPE(value)->tp_str == PyBaseObject_Type.tp_str;
  if (is_representation && has_python_special(interpreter, value, "__repr__"))
    return call_special(interpreter, value, "__repr__", &PyUnicode_Type);
  if (!repr && !interpreter.externals.is_external(value) && Py_TYPE(value)->tp_str == PyUnicode_Type.tp_str)
    return Ref::steal(PyObject_Str(value));
  if (is_builtin_container(value) &&
      (!interpreter.externals.is_external(value) || !PyDict_Check(value) || PyDict_CheckExact(value))) {
    Ref copy = plain(interpreter, value, "repr");
    return torch_result(
        interpreter, [&] { return Ref::steal(repr ? PyObject_Repr(copy.get()) : PyObject_Str(copy.get())); });
  }
  interpreter.stop(fmt::format("the text of an object of type {}", Py_TYPE(value)->tp_name));
}

Ref convert(Interpreter& interpreter, PyObject* value, int conversion) {
  if (conversion == 0) return Ref::borrow(value);
  Ref text = to_text(interpreter, value, conversion != 1);
  if (!text || conversion != 3) return text;
  Ref escaped = Ref::steal(PyUnicode_AsEncodedString(text.get(), "ascii", "backslashreplace"));
  return escaped ? Ref::steal(PyUnicode_FromEncodedObject(escaped.get(), "ascii", nullptr)) : Ref();
}

namespace {

// Whether the class's `__format__` gives the text of an object if there is no specification.
bool formats_as_text(Interpreter& interpreter, PyTypeObject* type) {
  const Ref method = type_lookup(interpreter, type, interned("__format__").get());
  return std::ranges::any_of(
      std::array{&PyBaseObject_Type, &PyUnicode_Type, &PyLong_Type, &PyFloat_Type, &PyComplex_Type},
      [&](PyTypeObject* base) { return method == _PyType_Lookup(base, interned("__format__").get()); });
}

}  // namespace

Ref format(Interpreter& interpreter, PyObject* value, int conversion, PyObject* spec) {
  Ref converted = convert(interpreter, constant_of(interpreter, value).get(), conversion);
  if (!converted) return {};
  if (!guards::is_constant(converted.get())) {
    if (has_python_special(interpreter, converted.get(), "__format__")) {
      Ref method = special_method(interpreter, converted.get(), "__format__");
      Ref text = call_positional(interpreter, method.get(),
                                 {spec ? Ref::borrow(spec) : Ref::steal(PyUnicode_FromString(""))});
      if (text && !PyUnicode_CheckExact(text.get()))
        interpreter.stop("__format__() of an object returns what is no str");
      return text;
    }
    const bool is_plain = !spec || PyUnicode_GET_LENGTH(spec) == 0;
    if (is_plain && formats_as_text(interpreter, Py_TYPE(converted.get())))
      return to_text(interpreter, converted.get(), false);
    interpreter.stop("formats an object with a format specification");
  }
  return Ref::steal(PyObject_Format(converted.get(), spec));
}

}  // namespace oxy::eval
