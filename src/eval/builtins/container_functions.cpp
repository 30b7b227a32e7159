// Builtins that make containers or go over all items of one.
#include <fmt/format.h>

#include <cstdlib>

#include "eval/builtins/builtin_families.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/hashing.h"
#include "eval/externals/plain.h"
#include "eval/methods/sequence_methods.h"
#include "eval/numbers/float_of_data.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/symbolic_size.h"
#include "eval/objects/containers.h"
#include "eval/objects/merging.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/torch/torch_call.h"

namespace oxy::eval {
namespace {

Ref make_list(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "list", 0, 1);
  return a.positional.empty() ? Ref::steal(PyList_New(0)) : drain(interpreter, arg(a, 0), true);
}

Ref make_tuple(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "tuple", 0, 1);
  if (a.positional.empty()) return Ref::steal(PyTuple_New(0));
  if (PyTuple_CheckExact(arg(a, 0))) return a.positional[0];
  Ref list = drain(interpreter, arg(a, 0), true);
  return list ? Ref::steal(PyList_AsTuple(list.get())) : Ref();
}

// Its items may be symbols.
Ref make_torch_size(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch.Size", 0, 1);
  const Ref items = make_tuple(interpreter, a);
  if (!items) return {};
  bool varies = false, are_ints = true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(items.get(), i);
    const bool is_symbol = is_symbolic_integer(interpreter, item);
    varies |= is_symbol;
    are_ints &= is_symbol || PyLong_Check(item);
  }
  if (varies && are_ints) return make_size(items.get());
  Arguments plain;
  plain.positional.push_back(items);
  return call_real_plain(interpreter, well_known("torch", "Size"), plain);
}

// As the syntax `x[a:b:c]` makes one: its parts may be symbols.
Ref make_slice_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "slice", 1, 3);
  const bool is_end_alone = a.positional.size() == 1;
  return make_slice(interpreter, is_end_alone ? nullptr : arg(a, 0), arg(a, is_end_alone ? 0 : 1),
                    a.positional.size() == 3 ? arg(a, 2) : nullptr);
}

Ref hashed(Interpreter& interpreter, const Arguments& a, const char* name, PyObject* (*make)(PyObject*)) {
  expect(interpreter, a, name, 0, 1);
  if (a.positional.empty()) return Ref::steal(make(nullptr));
  const Ref items = items_for_set(interpreter, arg(a, 0));
  return items ? Ref::steal(make(items.get())) : Ref();
}

Ref make_set(Interpreter& interpreter, Arguments& a) {
  return hashed(interpreter, a, "set", &PySet_New);
}

Ref make_frozenset(Interpreter& interpreter, Arguments& a) {
  if (a.positional.size() == 1 && PyFrozenSet_CheckExact(arg(a, 0))) return a.positional[0];
  return hashed(interpreter, a, "frozenset", &PyFrozenSet_New);
}

Ref make_dict(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "dict", 0, 1, true);
  Ref dict = Ref::steal(PyDict_New());
  if (!a.positional.empty() && !update_dict(interpreter, dict.get(), arg(a, 0))) return {};
  for (auto& [key, value] : a.keywords)
    if (PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) return {};
  return dict;
}

Ref make_deque(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "collections.deque", 0, 2, true);
  PyObject* const make = well_known("collections", "deque");
  if (a.positional.size() == 2) a.positional[1] = known(interpreter, arg(a, 1), "deque()");
  for (auto& [name, value] : a.keywords) value = known(interpreter, value.get(), "deque()");
  if (a.positional.empty()) return call_real(interpreter, make, a);
  // A wrong limit raises before any item is taken.
  Arguments limited = a;
  limited.positional[0] = Ref::steal(PyTuple_New(0));
  if (!call_real(interpreter, make, limited)) return {};
  a.positional[0] = drain(interpreter, arg(a, 0));
  return a.positional[0] ? call_real(interpreter, make, a) : Ref();
}

Ref extreme(Interpreter& interpreter, Arguments& a, bool maximum) {
  refuse_keywords(interpreter, a, maximum ? "max" : "min", {"key", "default"});
  Ref key = keyword(a, "key"), fallback = keyword(a, "default");
  PyObject* const function = well_known("builtins", maximum ? "max" : "min");
  if (a.positional.empty() || (fallback && a.positional.size() > 1))
    return call_real(interpreter, function, a);  // raises
  Ref items = a.positional.size() == 1 ? a.positional[0] : Ref::steal(PyList_New(0));
  if (a.positional.size() > 1)
    for (const Ref& value : a.positional)
      if (PyList_Append(items.get(), value.get()) < 0) return {};
  const Ref iterator = get_iterator(interpreter, items.get());
  if (!iterator) return {};
  Ref best, best_key;
  bool failed = false;
  while (Ref item = iterate(interpreter, iterator.get(), &failed)) {
    Ref item_key = key && key != Py_None ? call_positional(interpreter, key.get(), {item}) : item;
    if (!item_key) return {};
    if (best) {
      Ref better = compare(interpreter, item_key.get(), best_key.get(), maximum ? Py_GT : Py_LT);
      bool error = false;
      if (!better) return {};
      const bool take = truth(interpreter, better.get(), &error);
      if (error) return {};
      if (!take) continue;
    }
    best = std::move(item);
    best_key = std::move(item_key);
  }
  if (failed || best) return failed ? Ref() : best;
  if (fallback) return fallback;
  return call_real(interpreter, function, Arguments{{Ref::steal(PyTuple_New(0))}, {}});  // raises
}

Ref minimum(Interpreter& interpreter, Arguments& a) {
  return extreme(interpreter, a, false);
}

Ref maximum(Interpreter& interpreter, Arguments& a) {
  return extreme(interpreter, a, true);
}

Ref sum(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "sum", 1, 2, true);
  refuse_keywords(interpreter, a, "sum", {"start"});
  Ref total = a.positional.size() == 2 ? a.positional[1] : keyword(a, "start");
  const Ref iterator = get_iterator(interpreter, arg(a, 0));
  if (!iterator) return {};
  PyObject* const function = well_known("builtins", "sum");
  const auto add_numbers = [&](const Ref& numbers) {
    return call_real(interpreter, function, Arguments{{numbers, total}, {}});
  };
  if (!total) total = Ref::steal(PyLong_FromLong(0));
  if (PyUnicode_Check(total.get()) || PyBytes_Check(total.get()) || PyByteArray_Check(total.get()))
    return add_numbers(Ref::steal(PyTuple_New(0)));  // raises
  const auto is_number = [](PyObject* object) {
    return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object);
  };
  // From Python 3.12 on sum() adds floats in higher precision, up to the first item that is not a number.
  Ref numbers = is_number(total.get()) ? Ref::steal(PyList_New(0)) : Ref();
  bool failed = false;
  while (Ref item = iterate(interpreter, iterator.get(), &failed)) {
    if (numbers && is_number(item.get())) {
      if (PyList_Append(numbers.get(), item.get()) < 0) return {};
      continue;
    }
    if (numbers) total = add_numbers(std::exchange(numbers, Ref()));
    if (!total) return {};
    if (PY_VERSION_HEX >= 0x030C0000 && is_float_of_data(interpreter, item.get()))
      interpreter.stop("adds floats that depend on data by sum()");
    total = binary(interpreter, bytecode::BinaryKind::Add, false, total.get(), item.get());
    if (!total) return {};
  }
  if (failed) return {};
  return numbers ? add_numbers(numbers) : total;
}

Ref sum_of_floats(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "math.fsum", 1, 1);
  const Ref items = Ref::steal(PyList_New(0));
  const auto take = [&](const Ref& item) {
    const Ref number = plain(interpreter, item.get(), "math.fsum");
    if (!PyFloat_Check(number.get()) && !PyLong_Check(number.get()))
      interpreter.stop("adds up what is no number");
    return PyList_Append(items.get(), number.get()) == 0;
  };
  if (!take_items(interpreter, arg(a, 0), take)) return {};
  return call_real(interpreter, well_known("math", "fsum"), Arguments{{items}, {}});
}

Ref reduce(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "functools.reduce", 2, 3);
  const Ref iterator = iterator_or_stop(interpreter, arg(a, 1));
  Ref total = a.positional.size() == 3 ? a.positional[2] : Ref();
  const auto add = [&](Ref item) {
    total = total ? call_positional(interpreter, arg(a, 0), {total, std::move(item)}) : std::move(item);
    return static_cast<bool>(total);
  };
  if (!iterator || !take_rest(interpreter, iterator.get(), add)) return {};
  if (!total) PyErr_SetString(PyExc_TypeError, "reduce() of empty iterable with no initial value");
  return total;
}

Ref quantified(Interpreter& interpreter, Arguments& a, bool stop_at) {
  expect(interpreter, a, stop_at ? "any" : "all", 1, 1);
  Ref iterator = get_iterator(interpreter, arg(a, 0));
  if (!iterator) return {};
  while (true) {
    bool error = false;
    Ref item = iterate(interpreter, iterator.get(), &error);
    if (error) return {};
    if (!item) return boolean(!stop_at);
    const bool value = truth(interpreter, item.get(), &error);
    if (error) return {};
    if (value == stop_at) return boolean(stop_at);
  }
}

Ref any(Interpreter& interpreter, Arguments& a) {
  return quantified(interpreter, a, true);
}

Ref all(Interpreter& interpreter, Arguments& a) {
  return quantified(interpreter, a, false);
}

Ref sorted(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "sorted", 1, 1, true);
  refuse_keywords(interpreter, a, "sorted", {"key", "reverse"});
  const Ref items = drain(interpreter, arg(a, 0), true);
  if (!items) return {};
  Ref result = sort_items(interpreter, items.get(), keyword(a, "key").get(), keyword(a, "reverse").get());
  return PyErr_Occurred() ? Ref() : result;
}

constexpr BuiltinEntry kTable[] = {
    {"builtins", "list", &make_list},
    {"builtins", "tuple", &make_tuple},
    {"builtins", "slice", &make_slice_of},
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
    {"torch", "Size", &make_torch_size},
};

}  // namespace

std::span<const BuiltinEntry> container_builtins() {
  return kTable;
}

}  // namespace oxy::eval
