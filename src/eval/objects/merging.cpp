// Methods that take all items of an iterable and add them to a container, or look at them. Each item is dealt
// with before the next one is asked for. So code of the program's that yields the items sees the container
// change, and what was added stays if it raises. Sources: CPython's Objects/listobject.c, setobject.c,
// dictobject.c, odictobject.c and Modules/_collectionsmodule.c.
#include "eval/objects/merging.h"

#include <fmt/format.h>

#include <algorithm>

#include "cpy/dict.h"
#include "cpy/set.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/own_code.h"
#include "eval/externals/type_lookup.h"
#include "eval/objects/containers.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

namespace {

bool put_entry(Interpreter& interpreter, PyObject* dict, PyObject* key, PyObject* value);

// Calls the method of the container's builtin class, since a subclass may have its own.
Ref call_native(Interpreter& interpreter, PyObject* container, const char* name, std::vector<Ref> arguments) {
  auto* const base = reinterpret_cast<PyObject*>(native_base(Py_TYPE(container)));
  const Ref method = Ref::steal(PyObject_GetAttrString(base, name));
  arguments.insert(arguments.begin(), Ref::borrow(container));
  return call_real(interpreter, method.get(), Arguments{std::move(arguments), {}});
}

bool is_merged_by_table(PyObject* iterable) {
  return PyAnySet_Check(iterable) || PyDict_CheckExact(iterable);
}

}  // namespace

bool extend(Interpreter& interpreter, PyObject* sequence, PyObject* iterable, bool on_the_left) {
  const bool is_list = PyList_Check(sequence);
  const char* const append = on_the_left ? "appendleft" : "append";
  const auto add = [&](const Ref& item) {
    if (interpreter.externals.is_external(sequence))
      return append_items(interpreter, sequence, Ref::steal(PyTuple_Pack(1, item.get())).get());
    if (is_list) return PyList_Append(sequence, item.get()) == 0;
    return static_cast<bool>(call_native(interpreter, sequence, append, {item}));
  };
  if (iterable != sequence) return take_items(interpreter, iterable, add, is_list);
  // The sequence extends itself by the items that it has now.
  const Ref copy = materialize(interpreter, sequence);
  const Ref items = is_list ? Ref::steal(PyList_GetSlice(copy.get(), 0, PyList_GET_SIZE(copy.get())))
                            : drain(interpreter, iterable, true);
  return items && take_items(interpreter, items.get(), add);
}

bool update_set(Interpreter& interpreter, PyObject* set, PyObject* iterable, bool adds) {
  refuse_own_iteration(interpreter, iterable);
  if (interpreter.externals.is_external(set)) {
    // CPython resizes the table at once here. Single additions or removals give another size, and so another
    // order.
    if (!adds || PyAnySet_Check(iterable) || PyDict_Check(iterable))
      interpreter.stop("merges a set into one made before the call");
    return take_items(interpreter, iterable,
                      [&](const Ref& item) { return write_entry(interpreter, set, item.get(), Py_True); });
  }
  if (adds ? is_merged_by_table(iterable) : PyAnySet_Check(iterable)) {
    const Ref items = items_for_set(interpreter, iterable);
    return items && call_native(interpreter, set, adds ? "update" : "difference_update", {items});
  }
  const auto take = [&](const Ref& item) {
    const Ref key = key_of(interpreter, item.get());
    return (adds ? PySet_Add(set, key.get()) : PySet_Discard(set, key.get())) >= 0;
  };
  if (!take_items(interpreter, iterable, take)) return false;
  // At the end CPython makes the table anew if many items are gone. An update by nothing does that.
  return adds || call_native(interpreter, set, "difference_update", {Ref::steal(PyTuple_New(0))});
}

namespace {

// Writes the entry for pair number `place` of an iterable of pairs. The number is for the texts of errors.
bool put_pair(Interpreter& interpreter, PyObject* dict, PyObject* pair, Py_ssize_t place) {
  const bool is_two = (PyTuple_CheckExact(pair) || PyList_CheckExact(pair)) &&
                      PySequence_Size(materialize(interpreter, pair).get()) == 2;
  if (PyODict_Check(dict) && !is_two)
    interpreter.stop(fmt::format("takes a {} for a key and a value", Py_TYPE(pair)->tp_name));
  const Ref iterator = is_two ? Ref::borrow(pair) : get_iterator(interpreter, pair);
  const Ref parts = iterator ? drain(interpreter, iterator.get(), true) : Ref();
  if (!parts) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "cannot convert dictionary update sequence element #%zd to a sequence",
                   place);
    return false;
  }
  if (PyList_GET_SIZE(parts.get()) != 2) {
    PyErr_Format(PyExc_ValueError, "dictionary update sequence element #%zd has length %zd; 2 is required",
                 place, PyList_GET_SIZE(parts.get()));
    return false;
  }
  return put_entry(interpreter, dict, PyList_GET_ITEM(parts.get(), 0), PyList_GET_ITEM(parts.get(), 1));
}

bool put_entry(Interpreter& interpreter, PyObject* dict, PyObject* key, PyObject* value) {
  if (interpreter.externals.is_external(dict)) return write_entry(interpreter, dict, key, value);
  if (PyODict_Check(dict)) return set_item(interpreter, dict, key, value);
  return PyDict_SetItem(dict, key_of(interpreter, key).get(), value) == 0;
}

}  // namespace

bool update_dict(Interpreter& interpreter, PyObject* dict, PyObject* source) {
  if (source == dict) return true;
  refuse_own_iteration(interpreter, source);
  const bool ordered = PyODict_Check(dict) || PyODict_Check(source);
  const bool looks_up = has_python_special(interpreter, source, "keys") ||
                        has_python_special(interpreter, source, "__getitem__");
  if (PyDict_Check(source) && (!ordered || !looks_up)) {
    // CPython asks a subclass of dict for `keys`, but does not use the result.
    if (has_python_special(interpreter, source, "__getattribute__") &&
        !get_attribute(interpreter, source, interned("keys").get()))
      return false;
    const Ref entries = materialize(interpreter, source);
    const Ref keys = cpy::dict_keys(entries.get());
    for (Py_ssize_t i = 0; keys && i < PyTuple_GET_SIZE(keys.get()); ++i) {
      PyObject* const key = PyTuple_GET_ITEM(keys.get(), i);
      const Ref value = Ref::borrow(PyDict_GetItemWithError(entries.get(), key));
      if (!value || !put_entry(interpreter, dict, key, value.get())) return false;
    }
    return static_cast<bool>(keys);
  }
  if (Py_TYPE(source) == &PyDictProxy_Type) interpreter.stop("reads a mapping proxy");
  if (PyType_Check(source)) interpreter.stop("makes a dict of a class");
  // A method by which CPython knows a mapping; null if it has none. A set error is another one than its lack.
  const auto method = [&](const char* name) {
    if (!is_python_class(Py_TYPE(source)) || is_generator(source)) return Ref();
    Ref found = get_attribute(interpreter, source, interned(name).get());
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return found;
  };
  const Ref keys = method("keys");
  if (PyErr_Occurred()) return false;
  if (!keys) {
    const Ref items = PyODict_Check(dict) ? method("items") : Ref();
    if (PyErr_Occurred()) return false;
    const Ref pairs = items ? call_positional(interpreter, items.get(), {}) : Ref::borrow(source);
    Py_ssize_t place = 0;
    const auto put = [&](const Ref& pair) { return put_pair(interpreter, dict, pair.get(), place++); };
    return pairs && take_items(interpreter, pairs.get(), put);
  }
  // A dict looks the method up again to call it.
  const Ref called = PyODict_Check(dict) ? keys : get_attribute(interpreter, source, interned("keys").get());
  const Ref given = called ? call_positional(interpreter, called.get(), {}) : Ref();
  const Ref iterator = given ? iterator_or_stop(interpreter, given.get()) : Ref();
  if (!iterator) return false;
  const auto put = [&](const Ref& key) {
    const Ref value = get_item(interpreter, source, key.get());
    return value && put_entry(interpreter, dict, key.get(), value.get());
  };
  if (PyODict_Check(dict)) return take_rest(interpreter, iterator.get(), put);
  const Ref all = drain(interpreter, iterator.get(), true);  // a dict takes all keys first
  return all && take_items(interpreter, all.get(), put);
}

Ref intersection(Interpreter& interpreter, PyObject* set, PyObject* iterable) {
  if (PyAnySet_Check(iterable)) {
    const Ref items = items_for_set(interpreter, iterable);
    return items ? call_native(interpreter, set, "intersection", {items}) : Ref();
  }
  Ref common = Ref::steal(PyFrozenSet_Check(set) ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
  const auto add = [&](const Ref& item) {
    const int found = contains(interpreter, set, item.get());
    return found == 0 || (found == 1 && PySet_Add(common.get(), key_of(interpreter, item.get()).get()) == 0);
  };
  return take_items(interpreter, iterable, add) ? common : Ref();
}

namespace {

// Nothing: it is another method, or CPython refuses the arguments.
std::optional<Ref> merge_into_set(Interpreter& interpreter, PyObject* self, std::string_view name,
                                  const Arguments& arguments) {
  const std::vector<Ref>& given = arguments.positional;
  const auto done = [](bool succeeded) { return succeeded ? Ref::borrow(Py_None) : Ref(); };
  const bool adds = name == "update";
  if (PySet_Check(self) && (adds || name == "difference_update")) {
    for (const Ref& iterable : given)
      if (!update_set(interpreter, self, iterable.get(), adds)) return Ref();
    return done(true);
  }
  if (PySet_Check(self) && name == "__init__" && given.size() <= 1) {
    PySet_Clear(self);
    return done(given.empty() || update_set(interpreter, self, given[0].get(), true));
  }
  if (std::ranges::all_of(given, [](const Ref& value) { return is_merged_by_table(value.get()); }))
    return std::nullopt;
  if (name == "issuperset" || name == "isdisjoint") {
    if (given.size() != 1) return std::nullopt;
    const bool wanted = name == "issuperset";
    bool as_wanted = true, failed = false;
    const auto look = [&](const Ref& item) {
      const int found = contains(interpreter, self, item.get());
      failed = found < 0;
      as_wanted = !failed && (found == 1) == wanted;
      return as_wanted;
    };
    const bool all = take_items(interpreter, given[0].get(), look);
    if (failed || (!all && as_wanted)) return Ref();
    return Ref::borrow(as_wanted ? Py_True : Py_False);
  }
  const bool cuts_itself = name == "intersection_update" && PySet_Check(self);
  if (cuts_itself || name == "intersection") {
    Ref common = Ref::borrow(self);
    for (const Ref& iterable : given) {
      common = intersection(interpreter, common.get(), iterable.get());
      if (!common) return Ref();
    }
    if (!cuts_itself) return common;
    PySet_Clear(self);
    if (!call_native(interpreter, self, "update", {common})) return Ref();
    // In CPython the set takes over the table of the new one.
    if (!cpy::same_tables(common.get(), self))
      interpreter.stop("a set whose order comes from how its items were added");
    return done(true);
  }
  // union() merges into a copy, so code that yields the items does not see the set change.
  const bool adds_to_copy = name == "union";
  if (adds_to_copy || name == "difference") {
    const Ref copy = call_native(interpreter, self, "copy", {});
    std::vector<Ref> lists;
    for (const Ref& iterable : given) {
      lists.push_back(items_for_set(interpreter, iterable.get()));
      if (!lists.back()) return Ref();
    }
    return call_native(interpreter, copy.get(), adds_to_copy ? "union" : "difference", std::move(lists));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Ref> merge_into(Interpreter& interpreter, PyObject* self, std::string_view name,
                              const Arguments& arguments) {
  const std::vector<Ref>& given = arguments.positional;
  const auto done = [&](bool succeeded) { return succeeded ? Ref::borrow(Py_None) : Ref(); };
  if (PyDict_Check(self)) {
    const bool in_place = name == "__ior__" && given.size() == 1 && arguments.keywords.empty();
    const bool is_made = name == "__init__";
    const size_t before = is_made && is_defaultdict_type(native_base(Py_TYPE(self))) ? 1 : 0;  // the factory
    if (!in_place && name != "update" && !is_made) return std::nullopt;
    if (given.size() < before) return std::nullopt;
    if (given.size() > before + 1) {  // too many arguments: the real one raises before it looks at them
      std::vector<Ref> unseen(given.size(), Ref::borrow(Py_None));
      if (before == 1) unseen[0] = given[0];
      return call_native(interpreter, self, is_made ? "__init__" : "update", std::move(unseen));
    }
    if (before == 1 && !call_native(interpreter, self, "__init__", {given[0]})) return Ref();
    if (given.size() > before && !update_dict(interpreter, self, given[before].get())) return Ref();
    for (const auto& [key, value] : arguments.keywords)
      if (!put_entry(interpreter, self, key.get(), value.get())) return Ref();
    return in_place ? Ref::borrow(self) : Ref::borrow(Py_None);
  }
  if (!arguments.keywords.empty()) return std::nullopt;
  if (PyAnySet_Check(self)) return merge_into_set(interpreter, self, name, arguments);
  const bool is_list = PyList_Check(self);
  if (given.size() != 1 || (!is_list && !is_deque_type(Py_TYPE(self)))) return std::nullopt;
  const bool on_the_left = name == "extendleft" && !is_list;
  if (name == "extend" || on_the_left) return done(extend(interpreter, self, given[0].get(), on_the_left));
  if (name == "__iadd__") return extend(interpreter, self, given[0].get()) ? Ref::borrow(self) : Ref();
  if (name != "__init__") return std::nullopt;
  return done(call_native(interpreter, self, "__init__", {}) && extend(interpreter, self, given[0].get()));
}

}  // namespace oxy::eval
