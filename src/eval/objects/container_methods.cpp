// Methods of external lists, deques, dicts and sets: those that change the container, or look something up by
// key.
#include "eval/objects/container_methods.h"

#include <algorithm>
#include <array>

#include "cpy/set.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/effects.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/objects/containers.h"
#include "eval/objects/merging.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

namespace {

std::optional<Ref> change_list(Interpreter& interpreter, PyObject* self, std::string_view name,
                               Arguments& arguments);
std::optional<Ref> change_dict(Interpreter& interpreter, PyObject* self, std::string_view name,
                               Arguments& arguments);
Ref take_end(Interpreter& interpreter, PyObject* dict, PyObject* key, bool last);
std::optional<Ref> change_set(Interpreter& interpreter, PyObject* self, std::string_view name,
                              Arguments& arguments);

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Methods that change a list or deque, and need its length.
constexpr std::array<std::string_view, 12> kRearranging = {
    "insert",      "pop",      "remove",     "sort",       "reverse", "__setitem__",
    "__delitem__", "__imul__", "appendleft", "extendleft", "popleft", "rotate"};

constexpr std::array<const char*, 5> kOverridden = {"__setitem__", "__delitem__", "__getitem__",
                                                    "__contains__", "__missing__"};

bool covers_all(PyObject* key) {
  if (!PySlice_Check(key)) return false;
  auto* slice = reinterpret_cast<PySliceObject*>(key);
  return slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

bool is_in_place(std::string_view name) {
  return name.size() > 3 && name.starts_with("__i") && name.ends_with("__") && name != "__init__" &&
         name != "__iter__";
}

}  // namespace

Ref call_on_copy(Interpreter& interpreter, PyObject* copy, std::string_view name, Arguments arguments) {
  Ref method = Ref::steal(PyObject_GetAttrString(copy, std::string(name).c_str()));
  return method ? call_c_method(interpreter, method.get(), copy, name, std::move(arguments)) : Ref();
}

std::optional<Ref> call_container_method(Interpreter& interpreter, PyObject* self, std::string_view name,
                                         Arguments& arguments) {
  std::optional<Ref> result;
  if (name == "__len__" && arguments.positional.empty() && is_container(self))
    return Ref::steal(PyLong_FromSsize_t(size_of(interpreter, self)));
  if (PyList_Check(self) || is_deque_type(Py_TYPE(self)))
    result = change_list(interpreter, self, name, arguments);
  else if (PyDict_Check(self))
    result = change_dict(interpreter, self, name, arguments);
  else if (PySet_Check(self))
    result = change_set(interpreter, self, name, arguments);
  if (result && *result && is_in_place(name)) return Ref::borrow(self);
  return result;
}

namespace {

std::optional<Ref> change_list(Interpreter& interpreter, PyObject* self, std::string_view name,
                               Arguments& arguments) {
  std::vector<Ref>& given = arguments.positional;
  const size_t count = given.size();
  Ref none = Ref::borrow(Py_None);
  if (!arguments.keywords.empty() && name != "sort") return std::nullopt;
  if (name == "append" && count == 1) {
    Ref items = Ref::steal(PyList_New(0));
    PyList_Append(items.get(), given[0].get());
    return append_items(interpreter, self, items.get()) ? none : Ref();
  }
  if ((name == "extend" || name == "__iadd__") && count == 1)
    return extend(interpreter, self, given[0].get()) ? none : Ref();
  if ((name == "clear" && count == 0) ||
      (name == "__delitem__" && count == 1 && covers_all(given[0].get()))) {
    empty(interpreter, self);
    return none;
  }
  if (name == "__setitem__" && count == 2 && PyList_Check(self) && PySlice_Check(given[0].get())) {
    PyObject* const iterable = given[1].get();
    if (covers_all(given[0].get()) && (PyList_CheckExact(iterable) || PyTuple_CheckExact(iterable))) {
      const Ref items = drain(interpreter, iterable);
      empty(interpreter, self);
      return append_items(interpreter, self, items.get()) ? none : Ref();
    }
    require_open_effects(interpreter);
    Shadow& known = known_length(interpreter, self);
    known.written = true;
    const Ref copy = known.copy;
    return assign_slice(interpreter, copy.get(), given[0].get(), iterable == self ? copy.get() : iterable)
               ? none
               : Ref();
  }
  if (!among(kRearranging, name)) return std::nullopt;
  require_open_effects(interpreter);
  Shadow* s = interpreter.shadows.find(self);
  // (A full deque drops another item for a new one.)
  const bool added_last = PyList_Check(self) && s && !s->whole && s->copy && PyObject_Size(s->copy.get()) > 0;
  if (!(name == "pop" && count == 0 && added_last)) {
    s = &known_length(interpreter, self);
    if (name == "remove" || name == "sort") materialize(interpreter, self);
  }
  s->written = true;
  Ref copy = s->copy;
  if (name == "__setitem__" && count == 2) {  // the item may be a number that varies
    const Ref key = plain(interpreter, given[0].get(), "indexing");
    return PyObject_SetItem(copy.get(), key.get(), given[1].get()) == 0 ? none : Ref();
  }
  Ref result =
      name == "__setitem__" || name == "__delitem__" || name == "__imul__"
          ? call_real(interpreter,
                      Ref::steal(PyObject_GetAttrString(copy.get(), std::string(name).c_str())).get(),
                      arguments)
          : call_on_copy(interpreter, copy.get(), name, std::move(arguments));
  return result ? read_item(interpreter, result.get()) : Ref();
}

std::optional<Ref> change_dict(Interpreter& interpreter, PyObject* self, std::string_view name,
                               Arguments& arguments) {
  std::vector<Ref>& given = arguments.positional;
  const size_t count = given.size();
  Ref none = Ref::borrow(Py_None);
  PyObject* key = count > 0 ? given[0].get() : nullptr;
  const bool ordered = PyODict_Check(self);
  const bool by_keyword = !arguments.keywords.empty();
  if (name == "__setitem__" && count == 2)
    return write_entry(interpreter, self, key, given[1].get()) ? none : Ref();
  if (name == "__getitem__" && count == 1) return read_entry_or_make(interpreter, self, key);
  if (name == "__contains__" && count == 1) {
    const int found = has_key(interpreter, self, key);
    return found < 0 ? Ref() : Ref::borrow(found ? Py_True : Py_False);
  }
  if (name == "__delitem__" && count == 1) {
    const int found = has_key(interpreter, self, key);
    if (found == 0) set_key_error(key);
    return found == 1 && write_entry(interpreter, self, key, nullptr) ? none : Ref();
  }
  if (name == "get" && !by_keyword && (count == 1 || count == 2)) {
    Ref value = read_entry(interpreter, self, key);
    if (value || PyErr_Occurred()) return value;
    return count == 2 ? given[1] : none;
  }
  // The methods of OrderedDict call these, if a subclass has them.
  if (ordered && !PyODict_CheckExact(self) &&
      std::any_of(kOverridden.begin(), kOverridden.end(),
                  [&](const char* method) { return has_python_special(interpreter, self, method); }))
    return std::nullopt;
  if (name == "pop" && !by_keyword && (count == 1 || count == 2)) {
    Ref value = read_entry(interpreter, self, key);
    if (value) return write_entry(interpreter, self, key, nullptr) ? value : Ref();
    if (PyErr_Occurred()) return Ref();
    if (count == 2) return given[1];
    if (ordered)
      PyErr_SetObject(PyExc_KeyError, key);  // as OrderedDict.pop() does: a tuple becomes the arguments
    else
      set_key_error(key);
    return Ref();
  }
  if (name == "setdefault" && !by_keyword && (count == 1 || count == 2)) {
    Ref value = read_entry(interpreter, self, key);
    if (value || PyErr_Occurred()) return value;
    value = count == 2 ? given[1] : none;
    return write_entry(interpreter, self, key, value.get()) ? value : Ref();
  }
  if (name == "update" || name == "__ior__") return merge_into(interpreter, self, name, arguments);
  if (name == "clear" && count == 0) {
    empty(interpreter, self);
    return none;
  }
  if (name != "popitem" && name != "move_to_end") return std::nullopt;
  if (!ordered && (name != "popitem" || count != 0 || by_keyword)) return std::nullopt;
  const bool moves = name == "move_to_end";
  Ref last = Ref::borrow(Py_True);
  for (const auto& [keyword, value] : arguments.keywords) {
    if (PyUnicode_CompareWithASCIIString(keyword.get(), "last") != 0) return std::nullopt;
    last = value;
  }
  if (count > (moves ? 2 : 1) || (moves && count == 0)) return std::nullopt;
  if (count == (moves ? 2 : 1)) last = given.back();
  if (last != Py_True && last != Py_False) return std::nullopt;
  return take_end(interpreter, self, moves ? key : nullptr, last == Py_True);
}

// OrderedDict.move_to_end(key, last), or with a null key popitem(last).
Ref take_end(Interpreter& interpreter, PyObject* self, PyObject* key, bool last) {
  require_open_effects(interpreter);
  Shadow& s = whole_dict(interpreter, self);
  if (PyODict_Check(self) && s.iterated)
    interpreter.stop("changes an ordered dict that it has iterated over");
  PyObject* copy = s.copy.get();
  if (!key && PyDict_GET_SIZE(copy) == 0) {
    PyErr_SetString(PyExc_KeyError,
                    PyODict_Check(self) ? "dictionary is empty" : "popitem(): dictionary is empty");
    return {};
  }
  Ref items = Ref::steal(PyDict_Items(copy));
  const Py_ssize_t size = PyList_GET_SIZE(items.get());
  Py_ssize_t place = last ? size - 1 : 0;
  if (key) {
    Ref own = own_key(interpreter, key);
    const int found = PyDict_Contains(copy, own.get());
    if (found == 0) set_key_error(key);
    if (found != 1) return {};
    for (place = 0; place < size; ++place) {
      const int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), place), 0),
                                                own.get(), Py_EQ);
      if (same < 0) return {};
      if (same) break;
    }
  }
  s.written = true;
  Ref item = Ref::borrow(PyList_GET_ITEM(items.get(), place));
  PyDict_DelItem(copy, PyTuple_GET_ITEM(item.get(), 0));
  if (!key) return item;
  if (last) {
    PyDict_SetItem(copy, PyTuple_GET_ITEM(item.get(), 0), PyTuple_GET_ITEM(item.get(), 1));
    return Ref::borrow(Py_None);
  }
  PyList_SetSlice(items.get(), place, place + 1, nullptr);
  PyList_Insert(items.get(), 0, item.get());
  PyDict_Clear(copy);
  PyDict_MergeFromSeq2(copy, items.get(), 1);
  return Ref::borrow(Py_None);
}

std::optional<Ref> change_set(Interpreter& interpreter, PyObject* self, std::string_view name,
                              Arguments& arguments) {
  std::vector<Ref>& given = arguments.positional;
  const size_t count = given.size();
  Ref none = Ref::borrow(Py_None);
  if (!arguments.keywords.empty()) return std::nullopt;
  if (name != "add" && count == 1 && PySet_Check(given[0].get()) &&
      (name == "discard" || name == "remove" || name == "__contains__"))
    interpreter.stop("looks for a set in a set");
  if ((name == "add" || name == "discard") && count == 1)
    return write_entry(interpreter, self, given[0].get(), name == "add" ? Py_True : nullptr) ? none : Ref();
  if ((name == "remove" || name == "__contains__") && count == 1) {
    const int found = has_key(interpreter, self, given[0].get());
    if (found < 0) return Ref();
    if (name == "__contains__") return Ref::borrow(found ? Py_True : Py_False);
    if (!found) set_key_error(given[0].get());
    return found && write_entry(interpreter, self, given[0].get(), nullptr) ? none : Ref();
  }
  if (name == "clear" && count == 0) {
    empty(interpreter, self);
    return none;
  }
  const bool in_place = is_in_place(name);
  if (in_place && (count != 1 || !PyAnySet_Check(given[0].get()))) return std::nullopt;
  const bool adds = name == "update" || name == "__ior__";
  if (adds || name == "difference_update" || name == "__isub__") {
    for (const Ref& iterable : given)
      if (!update_set(interpreter, self, iterable.get(), adds)) return Ref();
    return none;
  }
  if (name == "__ixor__" && given[0] == self) {
    empty(interpreter, self);
    return none;
  }
  if (name == "__ixor__") {
    const Ref others = Ref::steal(PySequence_List(materialize(interpreter, given[0].get()).get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(others.get()); ++i) {
      PyObject* const item = PyList_GET_ITEM(others.get(), i);
      const int found = has_key(interpreter, self, item);
      if (found < 0 || !write_entry(interpreter, self, item, found ? nullptr : Py_True)) return Ref();
    }
    return none;
  }
  if (name != "intersection_update" && name != "__iand__") return std::nullopt;
  // These methods make a new set and take over its contents.
  Ref now = materialize(interpreter, self);
  if (given.empty()) return std::nullopt;
  for (const Ref& value : given) {
    now = intersection(interpreter, now.get(), value.get());
    if (!now) return Ref();
  }
  empty(interpreter, self);
  for (PyObject* item : cpy::SetItems(now.get()))
    if (!write_entry(interpreter, self, item, Py_True)) return Ref();
  // In CPython the set then has the table of the new one. Adding the items one by one may give another table.
  if (!cpy::same_tables(now.get(), materialize(interpreter, self).get()))
    interpreter.stop("a set whose order comes from how its items were added");
  return none;
}

}  // namespace

}  // namespace oxy::eval
