#include "eval/numbers/symbolic_size.h"

#include <torch/csrc/Size.h>

#include "eval/numbers/symbolic_integer.h"
#include "eval/python/varying_object.h"
#include "eval/state/interpreter.h"
#include "torch_api/symbolic_object.h"

namespace oxy::eval {

namespace {

// A tuple or list of the results of `convert`, or `items` itself if nothing changed.
template <class Convert>
Ref converted(PyObject* items, const Convert& convert) {
  Ref result;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(items, i);
    Ref made = convert(item);
    if (!made) return {};
    if (made == item) continue;
    if (!result) result = Ref::steal(PySequence_List(items));
    PyList_SetItem(result.get(), i, made.release());
  }
  if (!result) return Ref::borrow(items);
  if (THPSize_Check(items)) return make_size(Ref::steal(PyList_AsTuple(result.get())).get());
  return PyTuple_Check(items) ? Ref::steal(PyList_AsTuple(result.get())) : result;
}

// The int at hand in the place of a varying one; 0 for one that depends on data.
Ref number_at_hand(Interpreter& interpreter, PyObject* varying) {
  const Ref& value = interpreter.numbers.varying.at(varying).value;
  return value ? value : Ref::steal(PyLong_FromLong(0));
}

// The operand with the ints at hand in place of varying ones.
Ref at_hand(Interpreter& interpreter, PyObject* operand) {
  if (is_varying_number(operand)) return number_at_hand(interpreter, operand);
  if (!PyTuple_Check(operand)) return Ref::borrow(operand);
  return converted(operand, [&](PyObject* item) {
    return is_varying_number(item) ? number_at_hand(interpreter, item) : Ref::borrow(item);
  });
}

}  // namespace

Ref from_torch(Interpreter& interpreter, Ref result) {
  if (!result || !interpreter.numbers.symbols) return result;
  PyObject* const object = result.get();
  if (torch_api::is_symbolic_integer(object))
    return integer(interpreter, torch_api::expression_of(torch_api::symbolic_integer_of(object)));
  if (torch_api::is_symbolic_truth(object))
    return Ref::borrow(torch_api::truth_of(object) ? Py_True : Py_False);
  if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object) && !THPSize_Check(object)) return result;
  return converted(object, [&](PyObject* item) { return from_torch(interpreter, Ref::borrow(item)); });
}

Ref to_torch(Interpreter& interpreter, const sym::Expr& expression) {
  return Ref::steal(torch_api::to_python(torch_api::to_torch(interpreter.numbers.symbols, expression)));
}

// torch.Size() itself takes ints alone.
Ref make_size(PyObject* items) {
  const Py_ssize_t count = PyTuple_GET_SIZE(items);
  Ref size = Ref::steal(THPSizeType.tp_alloc(&THPSizeType, count));
  for (Py_ssize_t i = 0; size && i < count; ++i)
    PyTuple_SET_ITEM(size.get(), i, Py_NewRef(PyTuple_GET_ITEM(items, i)));
  return size;
}

Ref items_of_size(PyObject* size) {
  return Ref::steal(PySequence_Tuple(Ref::steal(PySequence_List(size)).get()));
}

Ref run_on_sizes(Interpreter& interpreter, PyObject* left, PyObject* right, binaryfunc run) {
  const auto plain = [](PyObject* operand) {
    return THPSize_Check(operand) ? items_of_size(operand) : Ref::borrow(operand);
  };
  const Ref example = Ref::steal(run(at_hand(interpreter, left).get(), at_hand(interpreter, right).get()));
  if (!example) return {};
  Ref result = Ref::steal(run(plain(left).get(), plain(right).get()));
  return result && THPSize_Check(example.get()) ? make_size(result.get()) : result;
}

Ref element_count(Interpreter& interpreter, PyObject* size) {
  sym::Expr count = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(size); ++i) {
    const std::optional<sym::Expr> item = expression_of(interpreter, PyTuple_GET_ITEM(size, i));
    if (!item) interpreter.stop("counts the elements of a size that is too large");
    count = count * *item;
  }
  return integer(interpreter, count);
}

}  // namespace oxy::eval
