// Methods of fresh lists, tuples and deques that compare items, and sorting.
#include "eval/methods/sequence_methods.h"

#include <fmt/format.h>

#include "eval/externals/c_calls.h"
#include "eval/externals/own_code.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/comparisons.h"
#include "eval/objects/containers.h"
#include "eval/python/objects.h"
#include "eval/state/arguments.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/torch/torch_call.h"
#include "guards/constants.h"

namespace oxy::eval {

std::optional<Ref> search_sequence(Interpreter& interpreter, PyObject* self, std::string_view name,
                                   const Arguments& arguments) {
  const bool is_sequence = PyList_Check(self) || PyTuple_Check(self) || is_deque_type(Py_TYPE(self));
  if (!is_sequence || arguments.positional.size() != 1 || !arguments.keywords.empty()) return std::nullopt;
  for (const char* special : {"__len__", "__getitem__", "__delitem__"})
    if (has_python_special(interpreter, self, special)) return std::nullopt;
  PyObject* const wanted = arguments.positional[0].get();
  if (name == "__contains__") {
    const int found = contains(interpreter, self, wanted);
    return found < 0 ? Ref() : Ref::borrow(found ? Py_True : Py_False);
  }
  if (name == "__eq__" || name == "__ne__") {
    const bool comparable = (PyList_Check(self) && PyList_Check(wanted)) ||
                            (PyTuple_Check(self) && PyTuple_Check(wanted)) ||
                            (is_deque_type(Py_TYPE(self)) && is_deque_type(Py_TYPE(wanted)));
    return comparable ? compare(interpreter, self, wanted, name == "__eq__" ? Py_EQ : Py_NE)
                      : Ref::borrow(Py_NotImplemented);
  }
  if (name != "count" && name != "index" && name != "remove") return std::nullopt;
  const Py_ssize_t size = PySequence_Size(self);
  Py_ssize_t found = 0;
  for (Py_ssize_t i = 0; i < PySequence_Size(self); ++i) {
    const Ref item = Ref::steal(PySequence_GetItem(self, i));
    const int matches = item ? is_or_equals(interpreter, item.get(), wanted) : -1;
    if (matches < 0) return Ref();
    if (is_deque_type(Py_TYPE(self)) && PySequence_Size(self) != size)
      interpreter.stop("a deque is changed by what compares its items");
    if (matches == 0) continue;
    if (name == "index") return Ref::steal(PyLong_FromSsize_t(i));
    if (name == "remove") return PySequence_DelItem(self, i) == 0 ? Ref::borrow(Py_None) : Ref();
    ++found;
  }
  if (name == "count") return Ref::steal(PyLong_FromSsize_t(found));
  if (!guards::is_constant(wanted))
    interpreter.stop("an item that is looked for is missing");  // CPython's error has its repr()
  Ref empty = Ref::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(
      is_deque_type(Py_TYPE(self)) ? native_base(Py_TYPE(self)) : Py_TYPE(self))));
  return call_real(interpreter,
                   Ref::steal(PyObject_GetAttrString(empty.get(), std::string(name).c_str())).get(),
                   arguments);
}

Ref sort_items(Interpreter& interpreter, PyObject* items, PyObject* key, PyObject* reverse) {
  const Py_ssize_t count = PyList_GET_SIZE(items);
  const Ref direction = reverse ? constant_of(interpreter, reverse) : Ref::borrow(Py_False);
  if (!PyLong_Check(direction.get())) interpreter.stop("sorts in an order that is no number");
  Ref keys = Ref::steal(PyList_New(0));
  Ref order = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref item = Ref::borrow(PyList_GET_ITEM(items, i));
    Ref item_key = key && key != Py_None ? call_positional(interpreter, key, {item}) : item;
    if (!item_key) return {};
    item_key = plain(interpreter, constant_of(interpreter, item_key.get()).get(), "sorting");
    refuse_own_code(interpreter, item_key.get(), "sorting");
    if (PyList_Append(keys.get(), item_key.get()) < 0) return {};
    if (PyList_Append(order.get(), Ref::steal(PyLong_FromSsize_t(i)).get()) < 0) return {};
  }
  const Ref sort = Ref::steal(PyObject_GetAttrString(order.get(), "sort"));
  const Ref none = Ref::steal(PyTuple_New(0));
  const Ref options = Ref::steal(PyDict_New());
  PyDict_SetItemString(options.get(), "key",
                       Ref::steal(PyObject_GetAttrString(keys.get(), "__getitem__")).get());
  PyDict_SetItemString(options.get(), "reverse", direction.get());
  const Ref done = Ref::steal(PyObject_Call(sort.get(), none.get(), options.get()));
  if (!done && PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(interpreter);
  cpy::SavedError keep;  // the order that was reached is written back even if a comparison raised
  Ref result = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; ++i)
    PyList_Append(result.get(), PyList_GET_ITEM(items, PyLong_AsSsize_t(PyList_GET_ITEM(order.get(), i))));
  return result;
}

Ref sort_in_place(Interpreter& interpreter, PyObject* self, const Arguments& arguments) {
  if (!arguments.positional.empty()) interpreter.stop("sorts in place with unusual arguments");
  refuse_keywords(interpreter, arguments, "sort", {"key", "reverse"});
  // The key function sees an empty list.
  const Ref items = Ref::steal(PySequence_List(self));
  if (!items || PyList_SetSlice(self, 0, PyList_GET_SIZE(self), nullptr) < 0) return {};
  const Ref sorted = sort_items(interpreter, items.get(), keyword(arguments, "key").get(),
                                keyword(arguments, "reverse").get());
  const bool failed = PyErr_Occurred() != nullptr;
  const bool modified = PyList_GET_SIZE(self) != 0;
  {
    const cpy::SavedError keep;
    PyList_SetSlice(self, 0, PyList_GET_SIZE(self), sorted ? sorted.get() : items.get());
  }
  if (failed) return {};
  if (!modified) return Ref::borrow(Py_None);
  PyErr_SetString(PyExc_ValueError, "list modified during sort");
  return {};
}

}  // namespace oxy::eval
