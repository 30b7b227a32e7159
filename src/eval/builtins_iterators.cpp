// Builtins that make and advance iterators.
#include <fmt/format.h>

#include <algorithm>

#include "eval/builtin_families.h"
#include "eval/generator.h"
#include "eval/objects.h"
#include "eval/prelude.h"
#include "guards/constants.h"

namespace oxy::eval {
namespace {

Ref make_iterator(Evaluator& e, Arguments& a) {
  expect(e, a, "iter", 1, 1);
  return e.get_iterator(arg(a, 0));
}

Ref next_item(Evaluator& e, Arguments& a) {
  expect(e, a, "next", 1, 2);
  PyObject* const iterator = arg(a, 0);
  // The exception may have a value.
  if (a.positional.size() == 1 && is_generator(iterator))
    return e.call_generator_method(iterator, "__next__", {});
  if (a.positional.size() == 1 && e.has_python_special(iterator, "__next__")) {
    const Ref method = e.special_method(iterator, "__next__");
    return method ? e.call_positional(method.get(), {}) : Ref();
  }
  bool error = false;
  Ref value = e.iterate(iterator, &error);
  if (value || error) return value;
  if (a.positional.size() == 2) return a.positional[1];
  PyErr_SetNone(PyExc_StopIteration);
  return {};
}

// Classes that take items from iterators: the C class if it may advance them, its form in Python for
// iterators that only the evaluator can.
Ref over_iterators(Evaluator& e, Arguments& a, PyTypeObject* type, const char* python_form,
                   size_t iterables) {
  bool in_c = true;
  for (size_t i = 0; i < std::min(iterables, a.positional.size()); ++i) {
    Ref iterator = e.get_iterator(arg(a, i));
    if (!iterator) return {};
    if (e.is_external(iterator.get())) e.stop("advances an iterator made before the captured region");
    in_c = in_c && is_builtin_iterator(iterator.get());
    a.positional[i] = std::move(iterator);
  }
  if (in_c) return e.call_real(reinterpret_cast<PyObject*>(type), a);
  Ref function = prelude_function(python_form);
  if (!e.accepts(function.get(), a)) e.stop(fmt::format("calls {}() with unusual arguments", type->tp_name));
  return e.call(function.get(), std::move(a));
}

PyTypeObject* itertools_type(const char* name) {
  return reinterpret_cast<PyTypeObject*>(well_known("itertools", name));
}

Ref make_zip(Evaluator& e, Arguments& a) {
  refuse_keywords(e, a, "zip", {"strict"});
  return over_iterators(e, a, &PyZip_Type, "zip_", a.positional.size());
}

// Numbers that say how to iterate, as the C class takes them; false with its exception set if it does not.
// (It looks at them before it looks at what it iterates over.)
bool take_bounds(Evaluator& e, Arguments& a, PyTypeObject* type) {
  const auto take = [&](Ref& value) {
    value = e.constant_of(value.get());
    if (value != Py_None && !(guards::is_constant(value.get()) && PyLong_Check(value.get())))
      e.stop(fmt::format("calls {}() with unusual arguments", type->tp_name));
  };
  const Ref nothing = Ref::steal(PyTuple_New(0));
  Arguments over_nothing;
  if (!a.positional.empty()) over_nothing.positional.push_back(nothing);
  for (size_t i = 1; i < a.positional.size(); ++i) {
    take(a.positional[i]);
    over_nothing.positional.push_back(a.positional[i]);
  }
  for (auto& [name, value] : a.keywords) {
    const bool is_iterable = PyUnicode_CompareWithASCIIString(name.get(), "iterable") == 0;
    if (!is_iterable) take(value);
    over_nothing.keywords.emplace_back(name, is_iterable ? nothing : value);
  }
  return static_cast<bool>(e.call_real(reinterpret_cast<PyObject*>(type), over_nothing));
}

Ref make_enumerate(Evaluator& e, Arguments& a) {
  return take_bounds(e, a, &PyEnum_Type) ? over_iterators(e, a, &PyEnum_Type, "enumerate_", 1) : Ref();
}

Ref make_slice_of_iterator(Evaluator& e, Arguments& a) {
  PyTypeObject* const type = itertools_type("islice");
  return take_bounds(e, a, type) ? over_iterators(e, a, type, "islice_", 1) : Ref();
}

// Iterates over its arguments one after another: a break of one of them must not come before its turn.
Ref make_chain(Evaluator& e, Arguments& a) {
  expect(e, a, "itertools.chain", 0, 1000);
  return e.call(prelude_function("chain_").get(), std::move(a));
}

constexpr char kProduct[] = "product", kPermutations[] = "permutations", kCombinations[] = "combinations",
               kRepeating[] = "combinations_with_replacement";

// They take all items of their arguments at once.
template <const char* name>
Ref make_combinations(Evaluator& e, Arguments& a) {
  // Whether a number is none is said before the items are taken, or after, as the function likes.
  const auto need_number = [&](Ref& value) {
    value = e.constant_of(value.get());
    if (!guards::is_constant(value.get()) || !PyLong_Check(value.get()))
      e.stop(fmt::format("calls itertools.{}() with unusual arguments", name));
  };
  for (auto& [word, value] : a.keywords) need_number(value);
  if (std::string_view(name) != kProduct) {
    const bool permutes = std::string_view(name) == kPermutations;
    refuse_keywords(e, a, name, {"r"});
    expect(e, a, name, permutes || keyword(a, "r") ? 1 : 2, keyword(a, "r") ? 1 : 2, true);
    if (a.positional.size() == 2) need_number(a.positional[1]);
  } else {
    refuse_keywords(e, a, name, {"repeat"});
  }
  for (Ref& value : a.positional) {
    const bool is_number = std::string_view(name) != kProduct && &value != &a.positional[0];
    if (is_number) continue;
    value = e.drain(value.get(), true);
    if (!value) return {};
  }
  return e.call_real(well_known("itertools", name), a);
}

Ref make_repeat(Evaluator& e, Arguments& a) {
  expect(e, a, "itertools.repeat", 1, 2);
  if (a.positional.size() == 2) {
    e.refuse_own_code(arg(a, 1), "itertools.repeat()");
    a.positional[1] = e.known(arg(a, 1), "itertools.repeat()");
  }
  return e.call_real(well_known("itertools", "repeat"), a);
}

Ref make_reversed(Evaluator& e, Arguments& a) {
  expect(e, a, "reversed", 1, 1);
  // What can be iterated only has no order to reverse.
  PyTypeObject* const type = Py_TYPE(arg(a, 0));
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
    const Ref method = e.type_lookup(type, interned("__reversed__").get());
    if (!method && e.has_python_special(arg(a, 0), "__len__")) e.stop("reverses an object by its __len__");
    if (method ? method.get() == Py_None : !PySequence_Check(arg(a, 0))) {
      PyErr_Format(PyExc_TypeError, "'%.200s' object is not reversible", type->tp_name);
      return {};
    }
  }
  if (e.has_python_special(arg(a, 0), "__reversed__"))
    return e.call_positional(e.special_method(arg(a, 0), "__reversed__").get(), {});
  if (e.has_python_special(arg(a, 0), "__getitem__")) e.stop("reverses an object by its __getitem__");
  Ref copy = e.materialize(arg(a, 0));
  if (e.is_external(copy.get()) && !guards::is_value(copy.get())) {
    copy = e.drain(copy.get());
    if (!copy) return {};
  }
  return e.call_real(reinterpret_cast<PyObject*>(&PyReversed_Type), Arguments{{copy}, {}});
}

constexpr BuiltinEntry kTable[] = {
    {"builtins", "iter", &make_iterator},
    {"builtins", "next", &next_item},
    {"builtins", "zip", &make_zip},
    {"builtins", "enumerate", &make_enumerate},
    {"builtins", "reversed", &make_reversed},
    {"itertools", "islice", &make_slice_of_iterator},
    {"itertools", "chain", &make_chain},
    {"itertools", "repeat", &make_repeat},
    {"itertools", "product", &make_combinations<kProduct>},
    {"itertools", "permutations", &make_combinations<kPermutations>},
    {"itertools", "combinations", &make_combinations<kCombinations>},
    {"itertools", "combinations_with_replacement", &make_combinations<kRepeating>},
};

}  // namespace

std::span<const BuiltinEntry> iterator_builtins() {
  return kTable;
}

}  // namespace oxy::eval
