// Arithmetic, comparison and formatting.
#include <fmt/format.h>

#include <array>

#include "eval/evaluator.h"
#include "eval/generator.h"
#include "eval/objects.h"
#include "eval/torch_call.h"
#include "eval/varying_number.h"
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

// Whether the left operand's own C code changes it before anybody else is asked.
bool changes_itself(const BinaryEntry& entry, PyObject* left, PyObject* right) {
  const bool is_plain_sequence = PyList_CheckExact(left) || is_deque_type(Py_TYPE(left));
  if (is_plain_sequence || !is_container(left) || PyTuple_Check(left))
    return false;  // a concatenation comes last
  if (PyAnySet_Check(left) && !PyAnySet_Check(right)) return false;
  return _PyType_Lookup(Py_TYPE(left), interned(entry.in_place).get()) != nullptr;
}

// Whether a class has a method that another, which it is derived from, lacks or has otherwise.
bool is_overridden(PyTypeObject* derived, PyTypeObject* base, const char* method) {
  const Ref name = interned(method);
  return _PyType_Lookup(derived, name.get()) != _PyType_Lookup(base, name.get());
}

constexpr const char* kCompare[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
constexpr const char* kCompareSymbol[] = {"<", "<=", "==", "!=", ">", ">="};

}  // namespace

// An operator of tensors is looked up in their class, where a program may put another.
void Evaluator::guard_tensor_special(PyObject* object, const char* method) {
  if (trace::is_trace_tensor(object)) type_lookup(Py_TYPE(object), interned(method).get());
}

Ref Evaluator::binary(BinaryKind kind, bool in_place, PyObject* left, PyObject* right) {
  const BinaryEntry& entry = kBinary[static_cast<size_t>(kind)];
  auto run = in_place ? entry.run_in_place : entry.run;
  if (is_varying_number(left) || is_varying_number(right)) {
    if (std::optional<Ref> result = varying_arithmetic(kind, in_place, left, right)) return *result;
    const Ref a = constant_of(left), b = constant_of(right);
    return binary(kind, in_place, a.get(), b.get());
  }
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    if (!trace::is_trace_tensor(left) && has_python_special(left, entry.method))
      stop("an operator of a user's class is given a tensor");
    guard_tensor_special(left, entry.method);
    guard_tensor_special(left, entry.in_place);
    guard_tensor_special(right, entry.reflected);
    Ref a = plain(left, "an operator"), b = plain(right, "an operator");
    if (in_place && a != left) stop("changes a container in place by an operator with a tensor");
    // `0 += tensor` is the addition, and cannot be written otherwise.
    const bool changes_left = in_place && !guards::is_constant(a.get());
    return torch_result(*this, "operator", changes_left ? entry.in_place : entry.method, {a.get(), b.get()},
                        [&] { return Ref::steal(run(a.get(), b.get())); });
  }
  if (guards::is_constant(left) && guards::is_constant(right)) return Ref::steal(run(left, right));
  const std::array<PyObject*, 2> operands = {left, right};
  if (auto result = with_scalars(operands, [&] { return Ref::steal(run(left, right)); })) return *result;
  auto try_method = [&](PyObject* self, const char* name, PyObject* other) -> Ref {
    if (!has_python_special(self, name)) return Ref::borrow(Py_NotImplemented);
    Ref method = special_method(self, name);
    return method ? call_positional(method.get(), {Ref::borrow(other)}) : Ref();
  };
  const bool reflected_first = Py_TYPE(left) != Py_TYPE(right) &&
                               PyType_IsSubtype(Py_TYPE(right), Py_TYPE(left)) &&
                               has_python_special(right, entry.reflected) &&
                               is_overridden(Py_TYPE(right), Py_TYPE(left), entry.reflected);
  if (in_place) {
    Ref result = try_method(left, entry.in_place, right);
    if (result != Py_NotImplemented) return result;
  }
  // Formatting takes whatever it is given.
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
  if (asks && !reflected_first && Py_TYPE(left) != Py_TYPE(right)) {
    Ref result = try_method(right, entry.reflected, left);
    if (result != Py_NotImplemented) return result;
  }
  if (asks && (has_python_special(left, entry.method) || has_python_special(right, entry.reflected))) {
    // What C code makes of the operands would be next.
    for (PyObject* operand : {left, right})
      if (is_container(operand) || PyUnicode_Check(operand) || PyBytes_Check(operand))
        stop("an operator that neither operand's class implements");
    std::string symbol = entry.symbol;
    if (in_place) symbol = kind == BinaryKind::Power ? "**=" : symbol + "=";
    PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %.100s: '%.100s' and '%.100s'",
                 symbol.c_str(), Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
    return {};
  }
  if (in_place && kind == BinaryKind::Or && PyDict_CheckExact(left) && !PyDict_Check(right)) {
    const Ref done = call_method(left, "update", Arguments{{Ref::borrow(right)}, {}});
    return done ? Ref::borrow(left) : Ref();
  }
  if (in_place && is_external(left) && is_container(left)) {
    Arguments arguments{{Ref::borrow(right)}, {}};
    if (auto result = call_container_method(left, entry.in_place, arguments)) return std::move(*result);
  }
  auto shallow = [&](PyObject* object) -> Ref {
    if (is_coroutine(object)) stop("an operator is given a coroutine");
    if (is_generator(object)) {
      if (in_place && kind == BinaryKind::Add && PyList_Check(left)) return drain(object, true);
      stop("an operator is given a generator");
    }
    if (in_place && kind == BinaryKind::Add && PyList_Check(left) && object == right &&
        has_python_special(object, "__iter__"))
      return drain(object, true);
    if (kind == BinaryKind::Remainder && object == right) refuse_own_code(object, "%");
    // What comes of it is of the class of one of them.
    if (kind == BinaryKind::Or && PyDict_Check(object) && !PyDict_CheckExact(object) &&
        (is_external(object) || !is_dict_like(object)))
      stop(fmt::format("an operator is given an object of type {}", Py_TYPE(object)->tp_name));
    Ref copy = materialize(object);
    if (kind == BinaryKind::Remainder && Py_TYPE(copy.get()) != Py_TYPE(object))
      stop(fmt::format("an operator is given an object of type {}", Py_TYPE(object)->tp_name));
    // There is one empty tuple.
    const bool is_empty = PyTuple_CheckExact(copy.get()) && PyTuple_GET_SIZE(copy.get()) == 0;
    if (is_external(copy.get()) && !is_empty && !is_identity_object(copy.get()))
      stop(fmt::format("an operator is given an object of type {}", Py_TYPE(object)->tp_name));
    return copy;
  };
  Ref a = shallow(left), b = shallow(right);
  Ref result = Ref::steal(run(a.get(), b.get()));
  if (!result && (Py_TYPE(a.get()) != Py_TYPE(left) || Py_TYPE(b.get()) != Py_TYPE(right))) {
    PyErr_Clear();
    stop("an operator raises, given an object of a subclass");  // which its words name
  }
  return result;
}

namespace {

// Whether two dicts have equal values for the same keys, asked as CPython does; -1: an exception is set.
int same_entries(Evaluator& evaluator, PyObject* left, PyObject* right) {
  if (PyDict_GET_SIZE(left) != PyDict_GET_SIZE(right)) return 0;
  const Ref entries = Ref::steal(PyDict_Items(left));  // comparing values may change the dict
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); ++i) {
    PyObject* const entry = PyList_GET_ITEM(entries.get(), i);
    const Ref key = evaluator.key_of(PyTuple_GET_ITEM(entry, 0));
    const Ref other = Ref::borrow(PyDict_GetItemWithError(right, key.get()));
    if (!other) return PyErr_Occurred() ? -1 : 0;
    if (const int equal = evaluator.is_or_equals(PyTuple_GET_ITEM(entry, 1), other.get()); equal != 1)
      return equal;
  }
  return 1;
}

// Whether C code that compares the container would come to an object with Python code for that.
bool holds_own_comparison(Evaluator& evaluator, PyObject* container, int depth) {
  constexpr int kDeepest = 100;  // which one that contains itself is as well
  if (depth == kDeepest) return true;
  const Ref shown = evaluator.materialize(container);
  const Ref items = PyDict_Check(shown.get()) ? Ref::steal(PyDict_Values(shown.get()))
                    : PyList_Check(shown.get()) || PyTuple_Check(shown.get()) ? shown
                                                                              : Ref::steal(PyTuple_New(0));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (guards::is_constant(item) || is_varying_number(item) || trace::is_trace_tensor(item)) continue;
    for (const char* name : kCompare)
      if (evaluator.has_python_special(item, name)) return true;
    if (is_builtin_container(item) && holds_own_comparison(evaluator, item, depth + 1)) return true;
  }
  return false;
}

}  // namespace

Ref Evaluator::compare(PyObject* left, PyObject* right, int operation) {
  if (is_varying_number(left) || is_varying_number(right)) {
    if (std::optional<Ref> result = varying_comparison(left, right, operation)) return *result;
    const Ref a = constant_of(left), b = constant_of(right);
    return compare(a.get(), b.get(), operation);
  }
  if (guards::is_constant(left) && guards::is_constant(right))
    return Ref::steal(PyObject_RichCompare(left, right, operation));
  const std::array<PyObject*, 2> operands = {left, right};
  if (auto result =
          with_scalars(operands, [&] { return Ref::steal(PyObject_RichCompare(left, right, operation)); }))
    return *result;
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    guard_tensor_special(left, kCompare[operation]);
    Ref a = plain(left, "a comparison"), b = plain(right, "a comparison");
    return torch_result(*this, "operator", kCompare[operation], {a.get(), b.get()},
                        [&] { return Ref::steal(PyObject_RichCompare(a.get(), b.get(), operation)); });
  }
  static constexpr int kReflected[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
  // Whether the operand's class has Python code for the comparison: object's `!=` is made of `==`.
  const auto by_equality = [&](PyObject* self, int asked) {
    return asked == Py_NE && !has_python_special(self, "__ne__") && has_python_special(self, "__eq__") &&
           !is_overridden(Py_TYPE(self), &PyBaseObject_Type, "__ne__");
  };
  const auto has_own = [&](PyObject* self, int asked) {
    return has_python_special(self, kCompare[asked]) || by_equality(self, asked);
  };
  const auto ask = [&](PyObject* self, int asked, PyObject* other) -> Ref {
    if (!has_own(self, asked)) return Ref::borrow(Py_NotImplemented);
    const bool inverted = by_equality(self, asked);
    Ref method = special_method(self, inverted ? "__eq__" : kCompare[asked]);
    Ref answer = method ? call_positional(method.get(), {Ref::borrow(other)}) : Ref();
    if (!inverted || !answer || answer == Py_NotImplemented) return answer;
    bool error = false;
    const bool equal = truth(answer.get(), &error);
    return error ? Ref() : Ref::borrow(equal ? Py_False : Py_True);
  };
  // The right operand goes first if its class is derived from the left one's.
  const bool right_first = Py_TYPE(left) != Py_TYPE(right) && PyType_IsSubtype(Py_TYPE(right), Py_TYPE(left));
  const int reflected = kReflected[operation];
  Ref result = Ref::borrow(Py_NotImplemented);
  if (right_first) result = ask(right, reflected, left);
  if (result == Py_NotImplemented) result = ask(left, operation, right);
  if (result == Py_NotImplemented && !right_first) result = ask(right, reflected, left);
  if (result != Py_NotImplemented) return result;
  if (has_own(left, operation) || has_own(right, reflected)) {
    // The C code of the other would be next.
    if (is_container(left) && is_container(right))
      stop("a comparison that the class of an operand leaves to C");
    if (operation != Py_EQ && operation != Py_NE) {
      PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'",
                   kCompareSymbol[operation], Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
      return {};
    }
    compare_identity(left, right);
    return Ref::borrow((left == right) == (operation == Py_EQ) ? Py_True : Py_False);
  }
  for (PyObject* operand : {left, right})
    if (is_external(operand) && PyODict_Check(operand)) stop("compares an ordered dict");
  if (left == right && is_code_constant(left)) compare_identity(left, right);
  if (is_deque_type(Py_TYPE(left)) && is_deque_type(Py_TYPE(right))) {
    for (PyObject* operand : {left, right})
      if (has_python_special(operand, "__iter__")) stop("compares a deque that iterates in its own way");
    const Ref a = Ref::steal(PySequence_List(materialize(left).get()));
    const Ref b = Ref::steal(PySequence_List(materialize(right).get()));
    return compare(a.get(), b.get(), operation);
  }
  if (is_builtin_container(left) && is_builtin_container(right)) {
    Ref a = materialize(left), b = materialize(right);
    const bool sequences = (PyList_Check(a.get()) && PyList_Check(b.get())) ||
                           (PyTuple_Check(a.get()) && PyTuple_Check(b.get()));
    if (sequences && (operation == Py_EQ || operation == Py_NE)) {
      // Comparing items may change the lists.
      bool equal = PySequence_Fast_GET_SIZE(a.get()) == PySequence_Fast_GET_SIZE(b.get());
      for (Py_ssize_t i = 0; equal; ++i) {
        const Py_ssize_t left_size = PySequence_Fast_GET_SIZE(a.get()),
                         right_size = PySequence_Fast_GET_SIZE(b.get());
        if (i >= left_size || i >= right_size) {
          equal = left_size == right_size;
          break;
        }
        Ref x = Ref::borrow(PySequence_Fast_GET_ITEM(a.get(), i));
        Ref y = Ref::borrow(PySequence_Fast_GET_ITEM(b.get(), i));
        const int matches = is_or_equals(x.get(), y.get());
        if (matches < 0) return {};
        equal = matches == 1;
      }
      return Ref::borrow(equal == (operation == Py_EQ) ? Py_True : Py_False);
    }
    const bool dicts =
        PyDict_Check(a.get()) && PyDict_Check(b.get()) && !(PyODict_Check(left) && PyODict_Check(right));
    if (dicts && (operation == Py_EQ || operation == Py_NE)) {
      const int equal = same_entries(*this, a.get(), b.get());
      return equal < 0 ? Ref() : Ref::borrow((equal == 1) == (operation == Py_EQ) ? Py_True : Py_False);
    }
    for (const Ref& operand : {a, b})
      if (holds_own_comparison(*this, operand.get(), 0))
        stop("compares containers of objects that compare in their own way");
    Ref x = plain(a.get(), "a comparison"), y = plain(b.get(), "a comparison");
    return torch_result(*this, [&] { return Ref::steal(PyObject_RichCompare(x.get(), y.get(), operation)); });
  }
  for (PyObject* operand : {left, right}) {
    if (!is_external(operand) || is_identity_object(operand)) continue;
    if (compares_identity(operand))
      compare_identity(left, right);
    else
      stop(fmt::format("compares an object of type {}", Py_TYPE(operand)->tp_name));
  }
  return Ref::steal(PyObject_RichCompare(left, right, operation));
}

int Evaluator::is_or_equals(PyObject* left, PyObject* right) {
  if (left == right) {
    if (!guards::is_constant(left)) compare_identity(left, right);
    return 1;
  }
  const auto may_be_nan = [&](PyObject* object) {
    return is_varying_number(object) ? varying_class(object) == &PyFloat_Type : guards::is_nan(object);
  };
  // A NaN is not equal to itself, so it counts which one it is.
  if (may_be_nan(left) && may_be_nan(right)) {
    const Ref a = constant_of(left), b = constant_of(right);
    if (a == b) return 1;
  }
  const Ref equal = compare(left, right, Py_EQ);
  bool error = false;
  const bool same = equal && truth(equal.get(), &error);
  return !equal || error ? -1 : static_cast<int>(same);
}

Ref Evaluator::unary(bytecode::Op op, PyObject* operand) {
  using bytecode::Op;
  const char* name = op == Op::UnaryNegative ? "__neg__" : op == Op::UnaryInvert ? "__invert__" : "__pos__";
  auto run = op == Op::UnaryNegative ? &PyNumber_Negative
             : op == Op::UnaryInvert ? &PyNumber_Invert
                                     : &PyNumber_Positive;
  if (is_varying_number(operand)) {
    const char* function = op == Op::UnaryNegative ? "neg" : op == Op::UnaryInvert ? "invert" : "pos";
    const std::array<PyObject*, 1> operands = {operand};
    if (std::optional<Ref> result = calculated(well_known("operator", function), operands)) return *result;
    return unary(op, constant_of(operand).get());
  }
  if (trace::is_trace_tensor(operand)) {
    guard_tensor_special(operand, name);
    return torch_result(*this, "operator", name, {operand}, [&] { return Ref::steal(run(operand)); });
  }
  const std::array<PyObject*, 1> operands = {operand};
  if (auto result = with_scalars(operands, [&] { return Ref::steal(run(operand)); })) return *result;
  if (has_python_special(operand, name)) {
    Ref method = special_method(operand, name);
    return method ? call_positional(method.get(), {}) : Ref();
  }
  if (is_external(operand) && !is_identity_object(operand))
    stop(fmt::format("an operator is given an object of type {}", Py_TYPE(operand)->tp_name));
  return Ref::steal(run(operand));
}

Ref Evaluator::to_text(PyObject* value, bool repr) {
  if (is_varying_number(value)) return to_text(constant_of(value).get(), repr);
  const bool exception = PyExceptionInstance_Check(value) && !is_external(value) &&
                         !has_python_special(value, repr ? "__repr__" : "__str__");
  if (exception) {
    // The text of its arguments is part of it.
    Ref args = Ref::steal(PyObject_GetAttrString(value, "args"));
    if (!args) return {};
    plain(args.get(), "the text of an exception");
  }
  if (exception || guards::is_constant(value) || is_value_object(value) || is_identity_object(value))
    return torch_result(*this, [&] { return Ref::steal(repr ? PyObject_Repr(value) : PyObject_Str(value)); });
  if (trace::is_trace_tensor(value)) stop("prints a tensor", "the text depends on data");
  for (const char* name : {"__str__", "__repr__"}) {
    if (repr && std::string_view(name) == "__str__") continue;
    if (!has_python_special(value, name)) continue;
    return call_special(value, name, &PyUnicode_Type);
  }
  if (is_builtin_container(value) &&
      (!is_external(value) || !PyDict_Check(value) || PyDict_CheckExact(value))) {
    Ref copy = plain(value, "repr");
    return torch_result(
        *this, [&] { return Ref::steal(repr ? PyObject_Repr(copy.get()) : PyObject_Str(copy.get())); });
  }
  stop(fmt::format("the text of an object of type {}", Py_TYPE(value)->tp_name));
}

Ref Evaluator::convert(PyObject* value, int conversion) {
  if (conversion == 0) return Ref::borrow(value);
  Ref text = to_text(value, conversion != 1);
  if (!text || conversion != 3) return text;
  Ref escaped = Ref::steal(PyUnicode_AsEncodedString(text.get(), "ascii", "backslashreplace"));
  return escaped ? Ref::steal(PyUnicode_FromEncodedObject(escaped.get(), "ascii", nullptr)) : Ref();
}

Ref Evaluator::format(PyObject* value, int conversion, PyObject* spec) {
  Ref converted = convert(constant_of(value).get(), conversion);
  if (!converted) return {};
  if (!guards::is_constant(converted.get()) && !is_enum_member(converted.get())) {
    if (has_python_special(converted.get(), "__format__")) {
      Ref method = special_method(converted.get(), "__format__");
      Ref text =
          call_positional(method.get(), {spec ? Ref::borrow(spec) : Ref::steal(PyUnicode_FromString(""))});
      if (text && !PyUnicode_CheckExact(text.get())) stop("__format__() of an object returns what is no str");
      return text;
    }
    if (!spec || PyUnicode_GET_LENGTH(spec) == 0) return to_text(converted.get(), false);
    stop("formats an object with a format specification");
  }
  return Ref::steal(PyObject_Format(converted.get(), spec));
}

}  // namespace oxy::eval
