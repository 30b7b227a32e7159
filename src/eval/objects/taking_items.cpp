// Taking items from iterables, as CPython's C code takes them: each item is dealt with before the next one is
// asked for. Code of the program's that yields the items may see that.
#include "eval/objects/taking_items.h"

#include "eval/externals/external_containers.h"
#include "eval/externals/type_lookup.h"
#include "eval/objects/containers.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/torch/torch_call.h"

namespace oxy::eval {

namespace {

bool is_plain_sequence(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

// The copy of an external container; any other object is given back as it is.
Ref shallow_iterable(Interpreter& interpreter, PyObject* iterable) {
  const bool as_it_is =
      trace::is_trace_tensor(iterable) || has_python_special(interpreter, iterable, "__iter__");
  return as_it_is ? Ref::borrow(iterable) : materialize(interpreter, iterable);
}

}  // namespace

bool take_rest(Interpreter& interpreter, PyObject* iterator, const TakeItem& take) {
  bool error = false;
  while (Ref item = iterate(interpreter, iterator, &error))
    if (!take(std::move(item))) return false;
  return !error;
}

bool take_items(Interpreter& interpreter, PyObject* iterable, const TakeItem& take, bool asks_length) {
  Ref shallow = shallow_iterable(interpreter, iterable);
  if (is_plain_sequence(shallow.get())) {
    if (asks_length && has_python_special(interpreter, iterable, "__len__")) {
      if (!ask_length_hint(interpreter, iterable)) return false;
      shallow = shallow_iterable(interpreter, iterable);
    }
    const Ref items = Ref::steal(PySequence_List(shallow.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
      if (!take(Ref::borrow(PyList_GET_ITEM(items.get(), i)))) return false;
    return true;
  }
  const Ref iterator = get_iterator(interpreter, shallow.get());
  if (!iterator || (asks_length && !ask_length_hint(interpreter, iterable))) return false;
  return take_rest(interpreter, iterator.get(), take);
}

Ref drain(Interpreter& interpreter, PyObject* iterable, bool asks_length) {
  if (is_plain_sequence(iterable) && !interpreter.externals.is_external(iterable))
    return Ref::steal(PySequence_List(iterable));
  Ref list = Ref::steal(PyList_New(0));
  const auto append = [&](const Ref& item) { return PyList_Append(list.get(), item.get()) == 0; };
  return take_items(interpreter, iterable, append, asks_length) ? list : Ref();
}

Ref iterator_or_stop(Interpreter& interpreter, PyObject* iterable) {
  Ref iterator = get_iterator(interpreter, iterable);
  if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    interpreter.stop("takes the items of what cannot be iterated over");
  }
  return iterator;
}

Ref fast_sequence(Interpreter& interpreter, PyObject* iterable) {
  const Ref shallow = shallow_iterable(interpreter, iterable);
  if (is_plain_sequence(shallow.get())) return drain(interpreter, iterable, true);
  const Ref iterator = iterator_or_stop(interpreter, shallow.get());
  return iterator ? drain(interpreter, iterator.get(), true) : Ref();
}

bool unpack(Interpreter& interpreter, PyObject* sequence, Py_ssize_t before, std::optional<Py_ssize_t> after,
            std::vector<Ref>* items) {
  const auto raise_too_few = [&](Py_ssize_t given) {
    if (after)
      PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %zd, got %zd)",
                   before + *after, given);
    else
      PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %zd, got %zd)", before, given);
    return false;
  };
  const Ref iterator = get_iterator(interpreter, shallow_iterable(interpreter, sequence).get());
  if (!iterator) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(sequence)->tp_iter && !PySequence_Check(sequence))
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(sequence)->tp_name);
    return false;
  }
  bool error = false;
  for (Py_ssize_t given = 0; given < before; ++given) {
    Ref item = iterate(interpreter, iterator.get(), &error);
    if (!item) return !error && raise_too_few(given);
    items->push_back(std::move(item));
  }
  if (!after) {
    if (!iterate(interpreter, iterator.get(), &error)) return !error;
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %zd)", before);
    return false;
  }
  Ref rest = drain(interpreter, iterator.get(), true);
  if (!rest) return false;
  const Py_ssize_t count = PyList_GET_SIZE(rest.get());
  if (count < *after) return raise_too_few(before + count);
  items->push_back(Ref::steal(PyList_GetSlice(rest.get(), 0, count - *after)));
  for (Py_ssize_t i = count - *after; i < count; ++i)
    items->push_back(Ref::borrow(PyList_GET_ITEM(rest.get(), i)));
  return true;
}

}  // namespace oxy::eval
