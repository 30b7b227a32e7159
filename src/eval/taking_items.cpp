// Taking the items of what the program iterates over, as CPython's C code takes them: what is done with an
// item is done before the next one is asked for, which code of the program's may see.
#include "eval/evaluator.h"
#include "eval/torch_call.h"

namespace oxy::eval {

namespace {

bool is_plain_sequence(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

}  // namespace

Ref Evaluator::shallow_iterable(PyObject* iterable) {
  const bool as_it_is = trace::is_trace_tensor(iterable) || has_python_special(iterable, "__iter__");
  return as_it_is ? Ref::borrow(iterable) : materialize(iterable);
}

bool Evaluator::take_rest(PyObject* iterator, const TakeItem& take) {
  bool error = false;
  while (Ref item = iterate(iterator, &error))
    if (!take(std::move(item))) return false;
  return !error;
}

bool Evaluator::take_items(PyObject* iterable, const TakeItem& take, bool asks_length) {
  Ref shallow = shallow_iterable(iterable);
  if (is_plain_sequence(shallow.get())) {
    if (asks_length && has_python_special(iterable, "__len__")) {
      if (!ask_length_hint(iterable)) return false;
      shallow = shallow_iterable(iterable);
    }
    const Ref items = Ref::steal(PySequence_List(shallow.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
      if (!take(Ref::borrow(PyList_GET_ITEM(items.get(), i)))) return false;
    return true;
  }
  const Ref iterator = get_iterator(shallow.get());
  if (!iterator || (asks_length && !ask_length_hint(iterable))) return false;
  return take_rest(iterator.get(), take);
}

Ref Evaluator::drain(PyObject* iterable, bool asks_length) {
  if (is_plain_sequence(iterable) && !is_external(iterable)) return Ref::steal(PySequence_List(iterable));
  Ref list = Ref::steal(PyList_New(0));
  const auto append = [&](const Ref& item) { return PyList_Append(list.get(), item.get()) == 0; };
  return take_items(iterable, append, asks_length) ? list : Ref();
}

Ref Evaluator::iterator_or_stop(PyObject* iterable) {
  Ref iterator = get_iterator(iterable);
  if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    stop("takes the items of what cannot be iterated over");
  }
  return iterator;
}

Ref Evaluator::fast_sequence(PyObject* iterable) {
  const Ref shallow = shallow_iterable(iterable);
  if (is_plain_sequence(shallow.get())) return drain(iterable, true);
  const Ref iterator = iterator_or_stop(shallow.get());
  return iterator ? drain(iterator.get(), true) : Ref();
}

bool Evaluator::unpack(PyObject* sequence, Py_ssize_t before, std::optional<Py_ssize_t> after,
                       std::vector<Ref>* items) {
  const auto raise_too_few = [&](Py_ssize_t given) {
    if (after)
      PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %zd, got %zd)",
                   before + *after, given);
    else
      PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %zd, got %zd)", before, given);
    return false;
  };
  const Ref iterator = get_iterator(shallow_iterable(sequence).get());
  if (!iterator) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(sequence)->tp_iter && !PySequence_Check(sequence))
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(sequence)->tp_name);
    return false;
  }
  bool error = false;
  for (Py_ssize_t given = 0; given < before; ++given) {
    Ref item = iterate(iterator.get(), &error);
    if (!item) return !error && raise_too_few(given);
    items->push_back(std::move(item));
  }
  if (!after) {
    if (!iterate(iterator.get(), &error)) return !error;
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %zd)", before);
    return false;
  }
  Ref rest = drain(iterator.get(), true);
  if (!rest) return false;
  const Py_ssize_t count = PyList_GET_SIZE(rest.get());
  if (count < *after) return raise_too_few(before + count);
  items->push_back(Ref::steal(PyList_GetSlice(rest.get(), 0, count - *after)));
  for (Py_ssize_t i = count - *after; i < count; ++i)
    items->push_back(Ref::borrow(PyList_GET_ITEM(rest.get(), i)));
  return true;
}

}  // namespace oxy::eval
