#include "eval/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "cpy/object_dict.h"
#include "eval/generator.h"
#include "eval/objects.h"
#include "eval/prelude.h"
#include "eval/torch_call.h"
#include "eval/traceback.h"
#include "guards/constants.h"

namespace oxy::eval {
namespace {

Ref none() {
  return Ref::borrow(Py_None);
}
Ref boolean(bool value) {
  return Ref::borrow(value ? Py_True : Py_False);
}

PyObject* arg(const Arguments& a, size_t i) {
  return a.positional[i].get();
}

// Checks the number of positional arguments as the real function would, or gives up.
void expect(Evaluator& e, const Arguments& a, const char* name, size_t low, size_t high,
            bool keywords = false) {
  if (a.positional.size() < low || a.positional.size() > high || (!keywords && !a.keywords.empty()))
    e.stop(fmt::format("calls {}() with unusual arguments", name));
}

Ref keyword(const Arguments& a, const char* name) {
  for (const auto& [key, value] : a.keywords)
    if (PyUnicode_CompareWithASCIIString(key.get(), name) == 0) return value;
  return {};
}

Ref length(Evaluator& e, Arguments& a) {
  expect(e, a, "len", 1, 1);
  PyObject* object = arg(a, 0);
  if (trace::is_trace_tensor(object))
    return torch_result(e, [&] {
      const Py_ssize_t size = PyObject_Size(object);
      return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
    });
  if (e.has_python_special(object, "__len__"))
    return e.call_positional(e.special_method(object, "__len__").get(), {});
  const SourceId source = e.source_of(object);
  if (source != guards::kNoSource) {
    if (!(PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object) || PyAnySet_Check(object)))
      e.stop(fmt::format("the length of an object of type {}", Py_TYPE(object)->tp_name));
    if (e.has_effects(object)) e.stop("the length of a container that it has written to");
    e.guards().require(source, guards::CheckKind::Length, nullptr, PyObject_Size(object));
  }
  const Py_ssize_t size = PyObject_Size(object);
  return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
}

Ref is_instance(Evaluator& e, Arguments& a) {
  expect(e, a, "isinstance", 2, 2);
  if (is_generator(arg(a, 0))) e.stop("tests the class of a generator");
  if (is_unknown_traceback(arg(a, 0))) e.stop("looks into a traceback");
  Ref classes = e.materialize(arg(a, 1));
  const int result = PyObject_IsInstance(arg(a, 0), classes.get());
  return result < 0 ? Ref() : boolean(result);
}

Ref is_subclass(Evaluator& e, Arguments& a) {
  expect(e, a, "issubclass", 2, 2);
  Ref classes = e.materialize(arg(a, 1));
  const int result = PyObject_IsSubclass(arg(a, 0), classes.get());
  return result < 0 ? Ref() : boolean(result);
}

Ref attribute_name(Evaluator& e, const Arguments& a) {
  Ref name = a.positional[1];
  if (!PyUnicode_CheckExact(name.get())) e.stop("getattr() with a name that is not a str");
  PyObject* interned = name.release();
  PyUnicode_InternInPlace(&interned);
  return Ref::steal(interned);
}

Ref get_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "getattr", 2, 3);
  Ref name = attribute_name(e, a);
  Ref value = e.get_attribute(arg(a, 0), name.get());
  if (value || a.positional.size() < 3 || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return a.positional[2];
}

Ref has_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "hasattr", 2, 2);
  Ref name = attribute_name(e, a);
  Ref value = e.get_attribute(arg(a, 0), name.get());
  if (value) return boolean(true);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
  PyErr_Clear();
  return boolean(false);
}

Ref set_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "setattr", 3, 3);
  Ref name = attribute_name(e, a);
  return e.set_attribute(arg(a, 0), name.get(), arg(a, 2)) ? none() : Ref();
}

Ref delete_attr(Evaluator& e, Arguments& a) {
  expect(e, a, "delattr", 2, 2);
  Ref name = attribute_name(e, a);
  return e.set_attribute(arg(a, 0), name.get(), nullptr) ? none() : Ref();
}

Ref is_callable(Evaluator& e, Arguments& a) {
  expect(e, a, "callable", 1, 1);
  return boolean(PyCallable_Check(arg(a, 0)));
}

Ref type_of(Evaluator& e, Arguments& a) {
  expect(e, a, "type", 1, 1);
  if (is_generator(arg(a, 0))) e.stop("tests the class of a generator");
  if (is_unknown_traceback(arg(a, 0))) e.stop("looks into a traceback");
  return e.pin(reinterpret_cast<PyObject*>(Py_TYPE(arg(a, 0))));
}

Ref make_super(Evaluator& e, Arguments& a) {
  Ref type, self;
  if (a.positional.size() == 2) {
    type = a.positional[0];
    self = a.positional[1];
  } else {
    expect(e, a, "super", 0, 0);
    Frame& frame = *e.frame();
    PyObject* names = frame.pycode()->co_localsplusnames;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      const Ref& local = frame.locals[static_cast<size_t>(i)];
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "__class__") == 0 && local &&
          PyCell_Check(local.get()))
        type = Ref::borrow(PyCell_GET(local.get()));
    }
    self = e.first_local(frame);
    if (self && PyCell_Check(self.get())) self = Ref::borrow(PyCell_GET(self.get()));
  }
  if (!type || !self) e.stop("super() outside of a method");
  e.pin(type.get());
  return Ref::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), type.get(),
                                                 self.get(), nullptr));
}

Ref make_iterator(Evaluator& e, Arguments& a) {
  expect(e, a, "iter", 1, 1);
  return e.get_iterator(arg(a, 0));
}

Ref next_item(Evaluator& e, Arguments& a) {
  expect(e, a, "next", 1, 2);
  bool error = false;
  Ref value = e.iterate(arg(a, 0), &error);
  if (value || error) return value;
  if (a.positional.size() == 2) return a.positional[1];
  PyErr_SetNone(PyExc_StopIteration);
  return {};
}

Ref make_list(Evaluator& e, Arguments& a) {
  expect(e, a, "list", 0, 1);
  return a.positional.empty() ? Ref::steal(PyList_New(0)) : e.drain(arg(a, 0));
}

Ref make_tuple(Evaluator& e, Arguments& a) {
  expect(e, a, "tuple", 0, 1);
  if (a.positional.empty()) return Ref::steal(PyTuple_New(0));
  if (PyTuple_CheckExact(arg(a, 0))) return a.positional[0];
  Ref list = e.drain(arg(a, 0));
  return list ? Ref::steal(PyList_AsTuple(list.get())) : Ref();
}

Ref hashed(Evaluator& e, const Arguments& a, const char* name, PyObject* (*make)(PyObject*)) {
  expect(e, a, name, 0, 1);
  if (a.positional.empty()) return Ref::steal(make(nullptr));
  Ref list = e.drain(arg(a, 0));
  if (!list) return {};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
    if (e.hashes_itself(PyList_GET_ITEM(list.get(), i))) e.stop("hashes an object with its own __hash__");
  return Ref::steal(make(list.get()));
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
  if (!a.positional.empty()) {
    Ref source = e.materialize(arg(a, 0));
    if (PyDict_Check(source.get()) && !e.has_python_special(source.get(), "keys")) {
      if (PyDict_Update(dict.get(), source.get()) < 0) return {};
    } else if (e.has_python_special(source.get(), "keys")) {
      Ref keys_method = e.special_method(source.get(), "keys");
      Ref keys = e.call_positional(keys_method.get(), {});
      Ref list = keys ? e.drain(keys.get()) : Ref();
      if (!list) return {};
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
        Ref value = e.get_item(source.get(), PyList_GET_ITEM(list.get(), i));
        if (!value || !e.set_item(dict.get(), PyList_GET_ITEM(list.get(), i), value.get())) return {};
      }
    } else {
      Ref list = e.drain(source.get());
      if (!list) return {};
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
        std::vector<Ref> pair;
        if (!e.unpack(PyList_GET_ITEM(list.get(), i), 2, 0, false, &pair)) return {};
        if (!e.set_item(dict.get(), pair[0].get(), pair[1].get())) return {};
      }
    }
  }
  for (auto& [key, value] : a.keywords)
    if (PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) return {};
  return dict;
}

Ref make_bool(Evaluator& e, Arguments& a) {
  expect(e, a, "bool", 0, 1);
  if (a.positional.empty()) return boolean(false);
  bool error = false;
  const bool value = e.truth(arg(a, 0), &error);
  return error ? Ref() : boolean(value);
}

Ref number(Evaluator& e, const Arguments& a, const char* name, const char* special, PyTypeObject* type) {
  expect(e, a, name, 0, 2, true);
  if (!a.positional.empty()) {
    PyObject* value = arg(a, 0);
    if (e.has_python_special(value, special))
      return e.call_positional(e.special_method(value, special).get(), {});
    if (trace::is_trace_tensor(value))
      return torch_result(e, [&] { return e.call_real(reinterpret_cast<PyObject*>(type), a); });
    if (!guards::is_constant(value))
      e.stop(fmt::format("{}() of an object of type {}", name, Py_TYPE(value)->tp_name));
  }
  return e.call_real(reinterpret_cast<PyObject*>(type), a);
}

Ref make_int(Evaluator& e, Arguments& a) {
  return number(e, a, "int", "__int__", &PyLong_Type);
}
Ref make_float(Evaluator& e, Arguments& a) {
  return number(e, a, "float", "__float__", &PyFloat_Type);
}

Ref make_str(Evaluator& e, Arguments& a) {
  expect(e, a, "str", 0, 1);
  if (a.positional.empty()) return Ref::steal(PyUnicode_FromString(""));
  return e.to_text(arg(a, 0), false);
}

Ref make_repr(Evaluator& e, Arguments& a) {
  expect(e, a, "repr", 1, 1);
  return e.to_text(arg(a, 0), true);
}

Ref extreme(Evaluator& e, Arguments& a, bool maximum) {
  Ref key = keyword(a, "key"), fallback = keyword(a, "default");
  Ref items;
  if (a.positional.size() == 1) {
    items = e.drain(arg(a, 0));
  } else {
    items = Ref::steal(PyList_New(0));
    for (const Ref& value : a.positional) PyList_Append(items.get(), value.get());
  }
  if (!items) return {};
  if (PyList_GET_SIZE(items.get()) == 0) {
    if (fallback) return fallback;
    PyErr_Format(PyExc_ValueError, "%s() arg is an empty sequence", maximum ? "max" : "min");
    return {};
  }
  Ref best, best_key;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    Ref item = Ref::borrow(PyList_GET_ITEM(items.get(), i));
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
  return best;
}

Ref minimum(Evaluator& e, Arguments& a) {
  return extreme(e, a, false);
}
Ref maximum(Evaluator& e, Arguments& a) {
  return extreme(e, a, true);
}

Ref sum(Evaluator& e, Arguments& a) {
  expect(e, a, "sum", 1, 2, true);
  Ref total = a.positional.size() == 2 ? a.positional[1] : keyword(a, "start");
  if (!total) total = Ref::steal(PyLong_FromLong(0));
  Ref items = e.drain(arg(a, 0));
  if (!items) return {};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    total = e.binary(bytecode::BinaryKind::Add, false, total.get(), PyList_GET_ITEM(items.get(), i));
    if (!total) return {};
  }
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
  return over_iterators(e, a, &PyZip_Type, "zip_", a.positional.size());
}
Ref make_enumerate(Evaluator& e, Arguments& a) {
  return over_iterators(e, a, &PyEnum_Type, "enumerate_", 1);
}
Ref make_slice_of_iterator(Evaluator& e, Arguments& a) {
  for (size_t i = 1; i < a.positional.size(); ++i)
    if (!guards::is_constant(arg(a, i))) e.stop("calls itertools.islice() with unusual arguments");
  return over_iterators(e, a, itertools_type("islice"), "islice_", 1);
}
// Iterates over its arguments one after another: a break of one of them must not come before its turn.
Ref make_chain(Evaluator& e, Arguments& a) {
  expect(e, a, "itertools.chain", 0, 1000);
  return e.call(prelude_function("chain_").get(), std::move(a));
}

// They take all items of their arguments at once.
template <const char* name>
Ref make_combinations(Evaluator& e, Arguments& a) {
  for (Ref& value : a.positional) {
    if (guards::is_constant(value.get()) && !PyUnicode_Check(value.get())) continue;
    value = e.drain(value.get());
    if (!value) return {};
  }
  return e.call_real(well_known("itertools", name), a);
}
constexpr char kProduct[] = "product", kPermutations[] = "permutations", kCombinations[] = "combinations";

Ref make_repeat(Evaluator& e, Arguments& a) {
  expect(e, a, "itertools.repeat", 1, 2);
  return e.call_real(well_known("itertools", "repeat"), a);
}

Ref make_deque(Evaluator& e, Arguments& a) {
  expect(e, a, "collections.deque", 0, 2, true);
  if (!a.positional.empty() && !(a.positional[0] = e.drain(arg(a, 0)))) return {};
  return e.call_real(well_known("collections", "deque"), a);
}

Ref make_reversed(Evaluator& e, Arguments& a) {
  expect(e, a, "reversed", 1, 1);
  if (e.has_python_special(arg(a, 0), "__reversed__"))
    return e.call_positional(e.special_method(arg(a, 0), "__reversed__").get(), {});
  Ref copy = e.materialize(arg(a, 0));
  if (e.is_external(copy.get()) && !PyRange_Check(copy.get())) {
    copy = e.drain(copy.get());
    if (!copy) return {};
  }
  return e.call_real(reinterpret_cast<PyObject*>(&PyReversed_Type), Arguments{{copy}, {}});
}

Ref sorted(Evaluator& e, Arguments& a) {
  expect(e, a, "sorted", 1, 1, true);
  Ref key = keyword(a, "key"), reverse = keyword(a, "reverse");
  Ref items = e.drain(arg(a, 0));
  if (!items) return {};
  const bool descending = reverse && PyObject_IsTrue(reverse.get()) == 1;
  const Py_ssize_t count = PyList_GET_SIZE(items.get());
  Ref rows = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref item = Ref::borrow(PyList_GET_ITEM(items.get(), i));
    Ref item_key = key && key != Py_None ? e.call_positional(key.get(), {item}) : item;
    if (!item_key) return {};
    item_key = e.plain(item_key.get(), "sorted");
    Ref index = Ref::steal(PyLong_FromSsize_t(descending ? -i : i));
    Ref row = Ref::steal(PyTuple_Pack(2, item_key.get(), index.get()));
    PyList_Append(rows.get(), row.get());
  }
  if (PyList_Sort(rows.get()) < 0) {
    if (PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(e);
    return {};
  }
  if (descending) PyList_Reverse(rows.get());
  Ref result = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Py_ssize_t from = std::abs(PyLong_AsSsize_t(PyTuple_GET_ITEM(PyList_GET_ITEM(rows.get(), i), 1)));
    PyList_Append(result.get(), PyList_GET_ITEM(items.get(), from));
  }
  return result;
}

Ref hash_of(Evaluator& e, Arguments& a) {
  expect(e, a, "hash", 1, 1);
  if (!guards::is_constant(arg(a, 0))) e.stop("hashes an object");
  const Py_hash_t value = PyObject_Hash(arg(a, 0));
  return value == -1 ? Ref() : Ref::steal(PyLong_FromSsize_t(value));
}

Ref vars_of(Evaluator& e, Arguments& a) {
  expect(e, a, "vars", 1, 1);
  return e.generic_get_attribute(arg(a, 0), Ref::steal(PyUnicode_InternFromString("__dict__")).get());
}

Ref globals_of(Evaluator& e, Arguments& a) {
  expect(e, a, "globals", 0, 0);
  return e.pin(e.frame()->globals.get());
}

template <bytecode::BinaryKind kind>
Ref binary_operator(Evaluator& e, Arguments& a) {
  expect(e, a, "an operator", 2, 2);
  return e.binary(kind, false, arg(a, 0), arg(a, 1));
}

template <int operation>
Ref comparison(Evaluator& e, Arguments& a) {
  expect(e, a, "a comparison", 2, 2);
  return e.compare(arg(a, 0), arg(a, 1), operation);
}

Ref get_item(Evaluator& e, Arguments& a) {
  expect(e, a, "getitem", 2, 2);
  return e.get_item(arg(a, 0), arg(a, 1));
}

Ref absolute(Evaluator& e, Arguments& a) {
  expect(e, a, "abs", 1, 1);
  PyObject* value = arg(a, 0);
  if (e.has_python_special(value, "__abs__"))
    return e.call_positional(e.special_method(value, "__abs__").get(), {});
  return torch_result(e, [&] { return Ref::steal(PyNumber_Absolute(value)); });
}

Ref power(Evaluator& e, Arguments& a) {
  if (a.positional.size() == 2 && a.keywords.empty())
    return e.binary(bytecode::BinaryKind::Power, false, arg(a, 0), arg(a, 1));
  e.stop("calls pow() with a modulus");
}

Ref deep_copy(Evaluator& e, Arguments& a) {
  expect(e, a, "copy.deepcopy", 1, 1);
  std::unordered_map<PyObject*, Ref> memo;
  return e.deep_copy(arg(a, 0), memo);
}

// Looks at a function's parameters only.
Ref signature(Evaluator& e, Arguments& a) {
  expect(e, a, "inspect.signature", 1, 1);
  PyObject* function = PyMethod_Check(arg(a, 0)) ? PyMethod_GET_FUNCTION(arg(a, 0)) : arg(a, 0);
  if (!PyFunction_Check(function) && !PyType_Check(function)) e.stop("asks for the signature of an object");
  return e.call_real(well_known("inspect", "signature"), a);
}

Ref compiling(Evaluator&, Arguments&) {
  return boolean(true);
}
Ref not_so(Evaluator&, Arguments&) {
  return boolean(false);
}

Ref print_text(Evaluator& e, Arguments&) {
  e.stop("calls print()");
}
Ref graph_break(Evaluator& e, Arguments&) {
  e.stop("calls oxyfuel.graph_break()");
}
Ref disabled(Evaluator& e, Arguments&) {
  e.stop("calls a function that oxyfuel.disable() keeps in eager");
}
Ref identity_of(Evaluator& e, Arguments&) {
  e.stop("calls id()");
}

struct Entry {
  const char* module;
  const char* name;
  BuiltinHandler handler;
};

using bytecode::BinaryKind;
constexpr Entry kTable[] = {
    {"builtins", "len", &length},
    {"builtins", "isinstance", &is_instance},
    {"builtins", "issubclass", &is_subclass},
    {"builtins", "getattr", &get_attr},
    {"builtins", "hasattr", &has_attr},
    {"builtins", "setattr", &set_attr},
    {"builtins", "delattr", &delete_attr},
    {"builtins", "callable", &is_callable},
    {"builtins", "type", &type_of},
    {"builtins", "super", &make_super},
    {"builtins", "iter", &make_iterator},
    {"builtins", "next", &next_item},
    {"builtins", "list", &make_list},
    {"builtins", "tuple", &make_tuple},
    {"builtins", "dict", &make_dict},
    {"builtins", "set", &make_set},
    {"builtins", "frozenset", &make_frozenset},
    {"builtins", "bool", &make_bool},
    {"builtins", "int", &make_int},
    {"builtins", "float", &make_float},
    {"builtins", "str", &make_str},
    {"builtins", "repr", &make_repr},
    {"builtins", "min", &minimum},
    {"builtins", "max", &maximum},
    {"builtins", "sum", &sum},
    {"builtins", "any", &any},
    {"builtins", "all", &all},
    {"builtins", "zip", &make_zip},
    {"builtins", "enumerate", &make_enumerate},
    {"builtins", "reversed", &make_reversed},
    {"builtins", "sorted", &sorted},
    {"builtins", "hash", &hash_of},
    {"builtins", "vars", &vars_of},
    {"builtins", "globals", &globals_of},
    {"builtins", "abs", &absolute},
    {"builtins", "pow", &power},
    {"builtins", "print", &print_text},
    {"builtins", "id", &identity_of},
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
    {"itertools", "islice", &make_slice_of_iterator},
    {"itertools", "chain", &make_chain},
    {"itertools", "repeat", &make_repeat},
    {"itertools", "product", &make_combinations<kProduct>},
    {"itertools", "permutations", &make_combinations<kPermutations>},
    {"itertools", "combinations", &make_combinations<kCombinations>},
    {"collections", "deque", &make_deque},
    {"inspect", "signature", &signature},
    {"copy", "deepcopy", &deep_copy},
    {"torch.compiler", "is_compiling", &compiling},
    {"torch.compiler", "is_dynamo_compiling", &compiling},
    {"torch.compiler", "is_exporting", &not_so},
    {"torch._dynamo", "is_compiling", &compiling},
    {"torch._utils", "is_compiling", &compiling},
    {"torch.jit", "is_tracing", &not_so},
    {"torch.jit", "is_scripting", &not_so},
    {"oxyfuel", "is_compiling", &compiling},
    {"oxyfuel", "graph_break", &graph_break},
    {"oxyfuel._core", "call_disabled", &disabled},
};

template <size_t N>
bool module_among(const std::array<std::string_view, N>& prefixes, std::string_view module) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return module == prefix ||
           (module.size() > prefix.size() && module.starts_with(prefix) && module[prefix.size()] == '.');
  });
}

// Modules whose functions do what a compiler must not look into: they are called as they are.
constexpr std::array<std::string_view, 22> kNotInlined = {"torch._dynamo",
                                                          "torch._inductor",
                                                          "torch._functorch",
                                                          "torch._higher_order_ops",
                                                          "torch._subclasses",
                                                          "torch._library",
                                                          "torch._ops",
                                                          "torch.fx",
                                                          "torch.jit",
                                                          "torch.autograd.function",
                                                          "torch.autograd.graph",
                                                          "torch.utils.data",
                                                          "torch.distributed",
                                                          "torch.random",
                                                          "torch.utils.checkpoint",
                                                          "torch.serialization",
                                                          "logging",
                                                          "warnings",
                                                          "threading",
                                                          "oxyfuel._api",
                                                          "torch.library",
                                                          "torch.utils._pytree"};

}  // namespace

BuiltinHandler find_builtin(PyObject* callable) {
  static std::unordered_map<PyObject*, BuiltinHandler> table;
  static std::vector<const Entry*> missing = [] {
    std::vector<const Entry*> all_entries;
    for (const Entry& entry : kTable) all_entries.push_back(&entry);
    return all_entries;
  }();
  if (auto it = table.find(callable); it != table.end()) return it->second;
  const bool may_be_one = PyFunction_Check(callable) || PyCFunction_Check(callable) ||
                          PyType_Check(callable) ||
                          std::string_view(Py_TYPE(callable)->tp_name) == "nanobind.nb_func";
  if (!missing.empty() && may_be_one) {
    // An entry whose module was not loaded so far may be what is asked for.
    std::erase_if(missing, [](const Entry* entry) {
      PyObject* object = well_known(entry->module, entry->name);
      if (object) table.emplace(object, entry->handler);
      return object != nullptr;
    });
    if (auto it = table.find(callable); it != table.end()) return it->second;
  }
  return nullptr;
}

bool is_pure_builtin(PyObject* function) {
  static constexpr std::array<std::string_view, 6> kModules = {"math",  "cmath",     "_operator",
                                                               "_stat", "itertools", "_bisect"};
  static constexpr std::array<std::string_view, 8> kBuiltins = {"round", "divmod", "chr", "ord",
                                                                "bin",   "hex",    "oct", "ascii"};
  PyObject* self = PyCFunction_GET_SELF(function);
  if (!self || !PyModule_Check(self)) return false;
  const char* module = PyModule_GetName(self);
  if (!module) {
    PyErr_Clear();
    return false;
  }
  if (std::find(kModules.begin(), kModules.end(), module) != kModules.end()) return true;
  return std::string_view(module) == "builtins" &&
         std::find(kBuiltins.begin(), kBuiltins.end(),
                   reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name) != kBuiltins.end();
}

bool is_pure_type(PyTypeObject* type) {
  static constexpr std::array<std::string_view, 14> kNames = {"range",
                                                              "slice",
                                                              "complex",
                                                              "bytes",
                                                              "bytearray",
                                                              "torch.Size",
                                                              "torch.device",
                                                              "torch.finfo",
                                                              "torch.iinfo",
                                                              "itertools.count",
                                                              "datetime.timedelta",
                                                              "operator.itemgetter",
                                                              "operator.attrgetter",
                                                              "torch._C._InferenceMode"};
  return std::find(kNames.begin(), kNames.end(), type->tp_name) != kNames.end();
}

bool is_enum_class(PyObject* object) {
  PyObject* enum_type = well_known("enum", "EnumMeta");
  return enum_type && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(enum_type));
}

const char* refusal_to_inline(PyObject* function) {
  PyObject* module = reinterpret_cast<PyFunctionObject*>(function)->func_module;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (!text) return nullptr;
  if (module_among(kNotInlined, text)) return "functions of this module run in eager";
  return nullptr;
}

}  // namespace oxy::eval
