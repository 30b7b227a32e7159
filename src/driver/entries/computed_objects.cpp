#include "driver/entries/computed_objects.h"

#include <Python.h>

#include <algorithm>

namespace oxy::driver {

using cpy::Ref;

namespace {

// The value of an expression as Python computes it, whose ints have no limit.
Ref python_integer(const sym::Expr& e, std::span<const int64_t> symbols) {
  switch (e.kind()) {
    case sym::Kind::Constant:
      return Ref::steal(PyLong_FromLongLong(e.constant()));
    case sym::Kind::Variable:
      return Ref::steal(PyLong_FromLongLong(symbols[static_cast<size_t>(e.variable_id())]));
    default:
      break;
  }
  Ref result = python_integer(e.operands()[0], symbols);
  for (const sym::Expr& operand : e.operands().subspan(1)) {
    const Ref other = python_integer(operand, symbols);
    const int wanted = e.kind() == sym::Kind::Min ? Py_LT : Py_GT;
    if (e.kind() == sym::Kind::Sum)
      result = Ref::steal(PyNumber_Add(result.get(), other.get()));
    else if (e.kind() == sym::Kind::Product)
      result = Ref::steal(PyNumber_Multiply(result.get(), other.get()));
    else if (e.kind() == sym::Kind::FloorDiv)
      result = Ref::steal(PyNumber_FloorDivide(result.get(), other.get()));
    else if (e.kind() == sym::Kind::Mod)
      result = Ref::steal(PyNumber_Remainder(result.get(), other.get()));
    else if (PyObject_RichCompareBool(other.get(), result.get(), wanted) == 1)
      result = other;
    if (!result) break;
  }
  return result;
}

bool python_truth(const sym::Condition& condition, std::span<const int64_t> symbols) {
  const auto is_true = [&](const sym::Condition& part) { return python_truth(part, symbols); };
  if (condition.kind() == sym::ConditionKind::All) return std::ranges::all_of(condition.parts(), is_true);
  if (condition.kind() == sym::ConditionKind::Any) return std::ranges::any_of(condition.parts(), is_true);
  const Ref value = python_integer(condition.relation().value(), symbols);
  const Ref zero = Ref::steal(PyLong_FromLong(0));
  const sym::RelationKind kind = condition.relation().kind();
  const int operation = kind == sym::RelationKind::Zero      ? Py_EQ
                        : kind == sym::RelationKind::NonZero ? Py_NE
                                                             : Py_GE;
  return value && PyObject_RichCompareBool(value.get(), zero.get(), operation) == 1;
}

}  // namespace

std::vector<Ref> computed_objects(std::span<const std::variant<sym::Expr, sym::Condition>> computed,
                                  std::span<const int64_t> symbols) {
  std::vector<Ref> objects;
  for (const auto& one : computed) {
    if (const auto* integer = std::get_if<sym::Expr>(&one))
      objects.push_back(python_integer(*integer, symbols));
    else
      objects.push_back(Ref::steal(PyBool_FromLong(python_truth(std::get<sym::Condition>(one), symbols))));
  }
  return objects;
}

}  // namespace oxy::driver
