// Builtins that make containers or go through all items of one.
#include <fmt/format.h>

#include <cstdlib>

#include "eval/builtin_families.h"
#include "eval/objects.h"
#include "eval/torch_call.h"

namespace oxy::eval {
namespace {

Ref make_list(Evaluator& e, Arguments& a) {
  expect(e, a, "list", 0, 1);
  return a.positional.empty() ? Ref::steal(PyList_New(0)) : e.drain(arg(a, 0), true);
}

Ref make_tuple(Evaluator& e, Arguments& a) {
  expect(e, a, "tuple", 0, 1);
  if (a.positional.empty()) return Ref::steal(PyTuple_New(0));
  if (PyTuple_CheckExact(arg(a, 0))) return a.positional[0];
  Ref list = e.drain(arg(a, 0), true);
  return list ? Ref::steal(PyList_AsTuple(list.get())) : Ref();
}

Ref hashed(Evaluator& e, const Arguments& a, const char* name, PyObject* (*make)(PyObject*)) {
  expect(e, a, name, 0, 1);
  if (a.positional.empty()) return Ref::steal(make(nullptr));
  const Ref items = e.items_for_set(arg(a, 0));
  return items ? Ref::steal(make(items.get())) : Ref();
}

Ref make_set(Evaluator& e, Arguments& a) {
  return hashed(e, a, "set", &PySet_New);
}

Ref make_frozenset(Evaluator& e, Arguments& a) {
  if (a.positional.size() == 1 && PyFrozenSet_CheckExact(arg(a, 0))) return a.positional[0];
  return hashed(e, a, "frozenset", &PyFrozenSet_New);
}

Ref make_dict(Evaluator& e, Arguments& a) {
  expect(e, a, "dict", 0, 1, true);
  Ref dict = Ref::steal(PyDict_New());
  if (!a.positional.empty() && !e.update_dict(dict.get(), arg(a, 0))) return {};
  for (auto& [key, value] : a.keywords)
    if (PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) return {};
  return dict;
}

Ref make_deque(Evaluator& e, Arguments& a) {
  expect(e, a, "collections.deque", 0, 2, true);
  PyObject* const make = well_known("collections", "deque");
  if (a.positional.size() == 2) a.positional[1] = e.known(arg(a, 1), "deque()");
  for (auto& [name, value] : a.keywords) value = e.known(value.get(), "deque()");
  if (a.positional.empty()) return e.call_real(make, a);
  // What is wrong with the limit is said before the items are taken.
  Arguments limited = a;
  limited.positional[0] = Ref::steal(PyTuple_New(0));
  if (!e.call_real(make, limited)) return {};
  a.positional[0] = e.drain(arg(a, 0));
  return a.positional[0] ? e.call_real(make, a) : Ref();
}

Ref extreme(Evaluator& e, Arguments& a, bool maximum) {
  refuse_keywords(e, a, maximum ? "max" : "min", {"key", "default"});
  Ref key = keyword(a, "key"), fallback = keyword(a, "default");
  PyObject* const function = well_known("builtins", maximum ? "max" : "min");
  if (a.positional.empty() || (fallback && a.positional.size() > 1))
    return e.call_real(function, a);  // raises
  Ref items = a.positional.size() == 1 ? a.positional[0] : Ref::steal(PyList_New(0));
  if (a.positional.size() > 1)
    for (const Ref& value : a.positional)
      if (PyList_Append(items.get(), value.get()) < 0) return {};
  const Ref iterator = e.get_iterator(items.get());
  if (!iterator) return {};
  Ref best, best_key;
  bool failed = false;
  while (Ref item = e.iterate(iterator.get(), &failed)) {
    Ref item_key = key && key != Py_None ? e.call_positional(key.get(), {item}) : item;
    if (!item_key) return {};
    if (best) {
      Ref better = e.compare(item_key.get(), best_key.get(), maximum ? Py_GT : Py_LT);
      bool error = false;
      if (!better) return {};
      const bool take = e.truth(better.get(), &error);
      if (error) return {};
      if (!take) continue;
    }
    best = std::move(item);
    best_key = std::move(item_key);
  }
  if (failed || best) return failed ? Ref() : best;
  if (fallback) return fallback;
  return e.call_real(function, Arguments{{Ref::steal(PyTuple_New(0))}, {}});  // raises
}

Ref minimum(Evaluator& e, Arguments& a) {
  return extreme(e, a, false);
}

Ref maximum(Evaluator& e, Arguments& a) {
  return extreme(e, a, true);
}

Ref sum(Evaluator& e, Arguments& a) {
  expect(e, a, "sum", 1, 2, true);
  refuse_keywords(e, a, "sum", {"start"});
  Ref total = a.positional.size() == 2 ? a.positional[1] : keyword(a, "start");
  const Ref iterator = e.get_iterator(arg(a, 0));
  if (!iterator) return {};
  PyObject* const function = well_known("builtins", "sum");
  const auto add_numbers = [&](const Ref& numbers) {
    return e.call_real(function, Arguments{{numbers, total}, {}});
  };
  if (!total) total = Ref::steal(PyLong_FromLong(0));
  if (PyUnicode_Check(total.get()) || PyBytes_Check(total.get()) || PyByteArray_Check(total.get()))
    return add_numbers(Ref::steal(PyTuple_New(0)));  // raises
  const auto is_number = [](PyObject* object) {
    return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object);
  };
  // From Python 3.12 on floats are added with more digits than they have, up to what is no number.
  Ref numbers = is_number(total.get()) ? Ref::steal(PyList_New(0)) : Ref();
  bool failed = false;
  while (Ref item = e.iterate(iterator.get(), &failed)) {
    if (numbers && is_number(item.get())) {
      if (PyList_Append(numbers.get(), item.get()) < 0) return {};
      continue;
    }
    if (numbers) total = add_numbers(std::exchange(numbers, Ref()));
    if (!total) return {};
    total = e.binary(bytecode::BinaryKind::Add, false, total.get(), item.get());
    if (!total) return {};
  }
  if (failed) return {};
  return numbers ? add_numbers(numbers) : total;
}

Ref sum_of_floats(Evaluator& e, Arguments& a) {
  expect(e, a, "math.fsum", 1, 1);
  const Ref items = Ref::steal(PyList_New(0));
  const auto take = [&](const Ref& item) {
    const Ref number = e.plain(item.get(), "math.fsum");
    if (!PyFloat_Check(number.get()) && !PyLong_Check(number.get())) e.stop("adds up what is no number");
    return PyList_Append(items.get(), number.get()) == 0;
  };
  if (!e.take_items(arg(a, 0), take)) return {};
  return e.call_real(well_known("math", "fsum"), Arguments{{items}, {}});
}

Ref reduce(Evaluator& e, Arguments& a) {
  expect(e, a, "functools.reduce", 2, 3);
  const Ref iterator = e.iterator_or_stop(arg(a, 1));
  Ref total = a.positional.size() == 3 ? a.positional[2] : Ref();
  const auto add = [&](Ref item) {
    total = total ? e.call_positional(arg(a, 0), {total, std::move(item)}) : std::move(item);
    return static_cast<bool>(total);
  };
  if (!iterator || !e.take_rest(iterator.get(), add)) return {};
  if (!total) PyErr_SetString(PyExc_TypeError, "reduce() of empty iterable with no initial value");
  return total;
}

Ref quantified(Evaluator& e, Arguments& a, bool stop_at) {
  expect(e, a, stop_at ? "any" : "all", 1, 1);
  Ref iterator = e.get_iterator(arg(a, 0));
  if (!iterator) return {};
  while (true) {
    bool error = false;
    Ref item = e.iterate(iterator.get(), &error);
    if (error) return {};
    if (!item) return boolean(!stop_at);
    const bool value = e.truth(item.get(), &error);
    if (error) return {};
    if (value == stop_at) return boolean(stop_at);
  }
}

Ref any(Evaluator& e, Arguments& a) {
  return quantified(e, a, true);
}

Ref all(Evaluator& e, Arguments& a) {
  return quantified(e, a, false);
}

Ref sorted(Evaluator& e, Arguments& a) {
  expect(e, a, "sorted", 1, 1, true);
  refuse_keywords(e, a, "sorted", {"key", "reverse"});
  const Ref items = e.drain(arg(a, 0), true);
  if (!items) return {};
  Ref result = e.sort_items(items.get(), keyword(a, "key").get(), keyword(a, "reverse").get());
  return PyErr_Occurred() ? Ref() : result;
}

constexpr BuiltinEntry kTable[] = {
    {"builtins", "list", &make_list},
    {"builtins", "tuple", &make_tuple},
    {"builtins", "dict", &make_dict},
    {"builtins", "set", &make_set},
    {"builtins", "frozenset", &make_frozenset},
    {"builtins", "min", &minimum},
    {"builtins", "max", &maximum},
    {"builtins", "sum", &sum},
    {"math", "fsum", &sum_of_floats},
    {"functools", "reduce", &reduce},
    {"builtins", "any", &any},
    {"builtins", "all", &all},
    {"builtins", "sorted", &sorted},
    {"collections", "deque", &make_deque},
};

}  // namespace

std::span<const BuiltinEntry> container_builtins() {
  return kTable;
}

}  // namespace oxy::eval
