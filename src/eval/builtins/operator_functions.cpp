// Functions of the operator module, and builtins that are operators.
#include "eval/builtins/builtin_families.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/objects/comparisons.h"
#include "eval/objects/containers.h"
#include "eval/objects/taking_items.h"
#include "eval/state/evaluation.h"
#include "eval/torch/torch_call.h"

namespace oxy::eval {
namespace {

template <bytecode::BinaryKind kind>
Ref binary_operator(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "an operator", 2, 2);
  return binary(interpreter, kind, false, arg(a, 0), arg(a, 1));
}

template <int operation>
Ref comparison(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "a comparison", 2, 2);
  return compare(interpreter, arg(a, 0), arg(a, 1), operation);
}

Ref get_item(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "getitem", 2, 2);
  return get_item(interpreter, arg(a, 0), arg(a, 1));
}

Ref absolute(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "abs", 1, 1);
  if (has_python_special(interpreter, arg(a, 0), "__abs__"))
    return call_positional(interpreter, special_method(interpreter, arg(a, 0), "__abs__").get(), {});
  const Ref value = plain(interpreter, arg(a, 0), "abs()");
  return torch_result(interpreter, "operator", "abs", {value.get()},
                      [&] { return Ref::steal(PyNumber_Absolute(value.get())); });
}

Ref power(Interpreter& interpreter, Arguments& a) {
  if (a.positional.size() == 2 && a.keywords.empty())
    return binary(interpreter, bytecode::BinaryKind::Power, false, arg(a, 0), arg(a, 1));
  interpreter.stop("calls pow() with a modulus");
}

Ref concatenation(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "concat", 2, 2);
  const auto is_plain = [](PyObject* object) {
    return PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyUnicode_CheckExact(object);
  };
  if (!is_plain(arg(a, 0)) || Py_TYPE(arg(a, 0)) != Py_TYPE(arg(a, 1)))
    interpreter.stop("calls concat() with unusual arguments");
  return binary(interpreter, bytecode::BinaryKind::Add, false, arg(a, 0), arg(a, 1));
}

Ref membership(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "contains", 2, 2);
  const int found = contains(interpreter, arg(a, 0), arg(a, 1));
  return found < 0 ? Ref() : boolean(found == 1);
}

// operator.countOf() and indexOf().
template <bool counts>
Ref search(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, counts ? "countOf" : "indexOf", 2, 2);
  const Ref iterator = iterator_or_stop(interpreter, arg(a, 0));
  if (!iterator) return {};
  bool error = false;
  Py_ssize_t place = 0, found = 0;
  for (; Ref item = iterate(interpreter, iterator.get(), &error); ++place) {
    const int matches = is_or_equals(interpreter, item.get(), arg(a, 1));
    if (matches < 0) return {};
    if (matches == 1 && !counts) return Ref::steal(PyLong_FromSsize_t(place));
    found += matches;
  }
  if (error) return {};
  if (counts) return Ref::steal(PyLong_FromSsize_t(found));
  PyErr_SetString(PyExc_ValueError, "sequence.index(x): x not in sequence");
  return {};
}

using bytecode::BinaryKind;
constexpr BuiltinEntry kTable[] = {
    {"builtins", "abs", &absolute},
    {"builtins", "pow", &power},
    {"operator", "add", &binary_operator<BinaryKind::Add>},
    {"operator", "sub", &binary_operator<BinaryKind::Subtract>},
    {"operator", "mul", &binary_operator<BinaryKind::Multiply>},
    {"operator", "truediv", &binary_operator<BinaryKind::TrueDivide>},
    {"operator", "floordiv", &binary_operator<BinaryKind::FloorDivide>},
    {"operator", "mod", &binary_operator<BinaryKind::Remainder>},
    {"operator", "pow", &binary_operator<BinaryKind::Power>},
    {"operator", "matmul", &binary_operator<BinaryKind::MatrixMultiply>},
    {"operator", "and_", &binary_operator<BinaryKind::And>},
    {"operator", "or_", &binary_operator<BinaryKind::Or>},
    {"operator", "xor", &binary_operator<BinaryKind::Xor>},
    {"operator", "eq", &comparison<Py_EQ>},
    {"operator", "ne", &comparison<Py_NE>},
    {"operator", "lt", &comparison<Py_LT>},
    {"operator", "le", &comparison<Py_LE>},
    {"operator", "gt", &comparison<Py_GT>},
    {"operator", "ge", &comparison<Py_GE>},
    {"operator", "getitem", &get_item},
    {"operator", "concat", &concatenation},
    {"operator", "contains", &membership},
    {"operator", "countOf", &search<true>},
    {"operator", "indexOf", &search<false>},
};

}  // namespace

std::span<const BuiltinEntry> operator_builtins() {
  return kTable;
}

}  // namespace oxy::eval
