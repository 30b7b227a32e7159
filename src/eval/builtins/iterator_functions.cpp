// Builtins that make and advance iterators.
#include <fmt/format.h>

#include <algorithm>

#include "eval/builtins/builtin_families.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/own_code.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/containers.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/treatment/prelude.h"
#include "guards/constants.h"

namespace oxy::eval {
namespace {

Ref make_iterator(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "iter", 1, 1);
  return get_iterator(interpreter, arg(a, 0));
}

Ref next_item(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "next", 1, 2);
  PyObject* const iterator = arg(a, 0);
  // The StopIteration at the end may have a value.
  if (a.positional.size() == 1 && is_generator(iterator))
    return call_generator_method(interpreter, iterator, "__next__", {});
  if (a.positional.size() == 1 && has_python_special(interpreter, iterator, "__next__")) {
    const Ref method = special_method(interpreter, iterator, "__next__");
    return method ? call_positional(interpreter, method.get(), {}) : Ref();
  }
  bool error = false;
  Ref value = iterate(interpreter, iterator, &error);
  if (value || error) return value;
  if (a.positional.size() == 2) return a.positional[1];
  PyErr_SetNone(PyExc_StopIteration);
  return {};
}

// Classes that take items from iterators, such as zip. Makes the C class if it can advance the iterators
// itself, else calls the prelude's function for it.
Ref over_iterators(Interpreter& interpreter, Arguments& a, PyTypeObject* type, const char* python_form,
                   size_t iterables) {
  bool in_c = true;
  for (size_t i = 0; i < std::min(iterables, a.positional.size()); ++i) {
    Ref iterator = get_iterator(interpreter, arg(a, i));
    if (!iterator) return {};
    if (interpreter.externals.is_external(iterator.get()))
      interpreter.stop("advances an iterator made before the captured region");
    in_c = in_c && is_builtin_iterator(iterator.get());
    a.positional[i] = std::move(iterator);
  }
  if (in_c) return call_real(interpreter, reinterpret_cast<PyObject*>(type), a);
  Ref function = prelude_function(python_form);
  if (!accepts(interpreter, function.get(), a))
    interpreter.stop(fmt::format("calls {}() with unusual arguments", type->tp_name));
  return call(interpreter, function.get(), std::move(a));
}

PyTypeObject* itertools_type(const char* name) {
  return reinterpret_cast<PyTypeObject*>(well_known("itertools", name));
}

Ref make_zip(Interpreter& interpreter, Arguments& a) {
  refuse_keywords(interpreter, a, "zip", {"strict"});
  return over_iterators(interpreter, a, &PyZip_Type, "zip_", a.positional.size());
}

// Converts the numbers that say how to iterate (start, stop, step), as the C class does before it looks at
// the iterable. False with the exception of the C class set if it refuses them.
bool take_bounds(Interpreter& interpreter, Arguments& a, PyTypeObject* type) {
  const auto take = [&](Ref& value) {
    value = constant_of(interpreter, value.get());
    if (value != Py_None && !(guards::is_constant(value.get()) && PyLong_Check(value.get())))
      interpreter.stop(fmt::format("calls {}() with unusual arguments", type->tp_name));
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
  return static_cast<bool>(call_real(interpreter, reinterpret_cast<PyObject*>(type), over_nothing));
}

Ref make_enumerate(Interpreter& interpreter, Arguments& a) {
  return take_bounds(interpreter, a, &PyEnum_Type)
             ? over_iterators(interpreter, a, &PyEnum_Type, "enumerate_", 1)
             : Ref();
}

Ref make_slice_of_iterator(Interpreter& interpreter, Arguments& a) {
  PyTypeObject* const type = itertools_type("islice");
  return take_bounds(interpreter, a, type) ? over_iterators(interpreter, a, type, "islice_", 1) : Ref();
}

// itertools.chain. Its arguments are asked for iterators one by one: a break of one must not come before its
// turn.
Ref make_chain(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "itertools.chain", 0, 1000);
  return call(interpreter, prelude_function("chain_").get(), std::move(a));
}

constexpr char kProduct[] = "product", kPermutations[] = "permutations", kCombinations[] = "combinations",
               kRepeating[] = "combinations_with_replacement";

// Classes of itertools that take all items of their arguments at once.
template <const char* name>
Ref make_combinations(Interpreter& interpreter, Arguments& a) {
  // A wrong number raises before the items are taken, or after, depending on the function.
  const auto need_number = [&](Ref& value) {
    value = constant_of(interpreter, value.get());
    if (!guards::is_constant(value.get()) || !PyLong_Check(value.get()))
      interpreter.stop(fmt::format("calls itertools.{}() with unusual arguments", name));
  };
  for (auto& [word, value] : a.keywords) need_number(value);
  if (std::string_view(name) != kProduct) {
    const bool permutes = std::string_view(name) == kPermutations;
    refuse_keywords(interpreter, a, name, {"r"});
    expect(interpreter, a, name, permutes || keyword(a, "r") ? 1 : 2, keyword(a, "r") ? 1 : 2, true);
    if (a.positional.size() == 2) need_number(a.positional[1]);
  } else {
    refuse_keywords(interpreter, a, name, {"repeat"});
  }
  for (Ref& value : a.positional) {
    const bool is_number = std::string_view(name) != kProduct && &value != &a.positional[0];
    if (is_number) continue;
    value = drain(interpreter, value.get(), true);
    if (!value) return {};
  }
  return call_real(interpreter, well_known("itertools", name), a);
}

Ref make_repeat(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "itertools.repeat", 1, 2);
  if (a.positional.size() == 2) {
    refuse_own_code(interpreter, arg(a, 1), "itertools.repeat()");
    a.positional[1] = known(interpreter, arg(a, 1), "itertools.repeat()");
  }
  return call_real(interpreter, well_known("itertools", "repeat"), a);
}

Ref make_reversed(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "reversed", 1, 1);
  // reversed() needs a sequence, or an object with __reversed__().
  PyTypeObject* const type = Py_TYPE(arg(a, 0));
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
    const Ref method = type_lookup(interpreter, type, interned("__reversed__").get());
    if (!method && has_python_special(interpreter, arg(a, 0), "__len__"))
      interpreter.stop("reverses an object by its __len__");
    if (method ? method.get() == Py_None : !PySequence_Check(arg(a, 0))) {
      PyErr_Format(PyExc_TypeError, "'%.200s' object is not reversible", type->tp_name);
      return {};
    }
  }
  if (has_python_special(interpreter, arg(a, 0), "__reversed__"))
    return call_positional(interpreter, special_method(interpreter, arg(a, 0), "__reversed__").get(), {});
  if (has_python_special(interpreter, arg(a, 0), "__getitem__"))
    interpreter.stop("reverses an object by its __getitem__");
  Ref copy = materialize(interpreter, arg(a, 0));
  if (interpreter.externals.is_external(copy.get()) && !guards::is_value(copy.get())) {
    copy = drain(interpreter, copy.get());
    if (!copy) return {};
  }
  return call_real(interpreter, reinterpret_cast<PyObject*>(&PyReversed_Type), Arguments{{copy}, {}});
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
