// External lists, deques, dicts and sets: reads with guards, and shadows for writes.
#include "eval/externals/external_containers.h"

#include <fmt/format.h>

#include <span>
#include <unordered_set>
#include <vector>

#include "cpy/dict.h"
#include "cpy/set.h"
#include "eval/externals/admission.h"
#include "eval/externals/effects.h"
#include "eval/externals/hashing.h"
#include "eval/externals/identity.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::kNoSource;
using guards::SourceKind;

namespace {

bool is_sequence(PyObject* object) {
  return PyList_Check(object) || is_deque_type(Py_TYPE(object));
}

Py_ssize_t size_at_start(PyObject* object) {
  if (PyList_Check(object)) return PyList_GET_SIZE(object);
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object);
  if (PyDict_Check(object)) return PyDict_GET_SIZE(object);
  if (PyAnySet_Check(object)) return PySet_GET_SIZE(object);
  return PyObject_Size(object);
}

// Each item that is read is guarded: that takes memory, and time at each call.
constexpr size_t kMostItems = 100'000;

[[noreturn]] void stop_for_items(Interpreter& interpreter) {
  interpreter.stop(
      fmt::format("reads more than {} items of containers made before the captured region", kMostItems));
}

// Called once for each container whose items are read.
void count_items(Interpreter& interpreter, size_t items) {
  interpreter.shadows.items_read += items;
  if (interpreter.shadows.items_read > kMostItems) stop_for_items(interpreter);
}

// The key in the form in which an external container may have it: external tensors in place of trace tensors.
// Null, without an exception: it was made during the capture, so no external container had it at the start.
Ref key_at_start(Interpreter& interpreter, PyObject* key) {
  if (trace::is_trace_tensor(key)) {
    const auto real = interpreter.externals.external_of.find(key);
    if (real == interpreter.externals.external_of.end()) return {};
    interpreter.guards().require(interpreter.externals.source_of(key), CheckKind::Identity, real->second);
    return Ref::borrow(real->second);
  }
  if (PyTuple_CheckExact(key)) {
    Ref items = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
    bool same = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      Ref item = key_at_start(interpreter, PyTuple_GET_ITEM(key, i));
      if (!item) return {};
      same = same && item == PyTuple_GET_ITEM(key, i);
      PyTuple_SET_ITEM(items.get(), i, item.release());
    }
    return same ? Ref::borrow(key) : items;
  }
  if (any_tensor(key, trace::is_trace_tensor))
    interpreter.stop("looks up a tensor in a container made before the call");
  if (const SourceId source = interpreter.externals.source_of(key);
      source != kNoSource && !is_identity_object(key))
    interpreter.guards().require(source, CheckKind::Identity, key);
  return Ref::borrow(key);
}

// A key of an external container, in the form in which the program sees it.
Ref admit_key(Interpreter& interpreter, PyObject* key) {
  if (guards::is_constant(key)) return Ref::borrow(key);
  if (!runtime::is_tensor(key) && hashes_itself(interpreter, key))
    interpreter.stop("reads a dict with a key that hashes itself");
  if (!PyTuple_CheckExact(key) || !any_tensor(key, [](PyObject*) { return true; }))
    return pin(interpreter, key);
  Ref items = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    PyTuple_SET_ITEM(items.get(), i, admit_key(interpreter, PyTuple_GET_ITEM(key, i)).release());
  return items;
}

}  // namespace

Ref own_key(Interpreter& interpreter, PyObject* key) {
  const bool compares_itself = !trace::is_trace_tensor(key) && !compares_in_library(key) &&
                               has_python_special(interpreter, key, "__eq__");
  if (hashes_itself(interpreter, key) || compares_itself)
    interpreter.stop("looks up a dict key that hashes itself");
  return PyTuple_Check(key) ? plain(interpreter, key, "a dict") : key_of(interpreter, key);
}

void need_few_items_within(Interpreter& interpreter, PyObject* container) {
  const Shadow* known = interpreter.shadows.find(container);
  if (interpreter.externals.source_of(container) == kNoSource ||
      (known && (known->whole || known->emptied)) || interpreter.shadows.immutable_copies.contains(container))
    return;
  std::unordered_set<PyObject*> seen = {container};
  std::vector<PyObject*> stack = {container};
  size_t items = 0;
  while (!stack.empty() && items <= kMostItems) {
    PyObject* object = stack.back();
    stack.pop_back();
    const auto see = [&](PyObject* item) {
      ++items;
      if ((PyList_Check(item) || PyTuple_Check(item) || PyDict_Check(item)) && seen.insert(item).second)
        stack.push_back(item);
    };
    if (PyDict_Check(object)) {
      PyObject *key = nullptr, *value = nullptr;
      Py_ssize_t position = 0;
      while (items <= kMostItems && PyDict_Next(object, &position, &key, &value)) see(value);
    } else {
      const std::span list(PySequence_Fast_ITEMS(object),
                           static_cast<size_t>(PySequence_Fast_GET_SIZE(object)));
      for (size_t i = 0; items <= kMostItems && i < list.size(); ++i) see(list[i]);
    }
  }
  if (items > kMostItems) stop_for_items(interpreter);
}

// --- Lists and deques

Shadow& known_length(Interpreter& interpreter, PyObject* object) {
  Shadow& s = interpreter.shadows.of(object);
  if (s.whole) return s;
  const bool list = PyList_Check(object);
  const SourceId source = interpreter.externals.source_of(object);
  Ref limit = Ref::borrow(Py_None);
  if (!list) {
    limit = Ref::steal(PyObject_GetAttrString(object, "maxlen"));
    interpreter.guards().require(source, CheckKind::DequeLimit, nullptr,
                                 limit == Py_None ? -1 : PyLong_AsSsize_t(limit.get()));
  }
  Ref items = Ref::steal(PyList_New(0));
  if (!s.emptied) {
    const Py_ssize_t size = size_at_start(object);
    count_items(interpreter, static_cast<size_t>(size));
    interpreter.guards().require(source, CheckKind::Length, nullptr, size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      const auto index = static_cast<int32_t>(i);
      const SourceId item = list
                                ? interpreter.guards().list_item(source, index)
                                : interpreter.guards().derived(SourceKind::DequeItem, source, nullptr, index);
      Ref placeholder = Ref::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
      // A subclass of list may have a __getitem__ of its own.
      interpreter.shadows.unread_items.emplace(
          placeholder.get(), Shadows::UnreadItem{item, list ? Ref::borrow(PyList_GET_ITEM(object, i))
                                                            : Ref::steal(PySequence_GetItem(object, i))});
      interpreter.externals.keep_alive.push_back(placeholder);
      s.before.push_back(placeholder);
      PyList_Append(items.get(), placeholder.get());
    }
  }
  const Ref added = s.copy;
  s.copy = list ? items
                : Ref::steal(PyObject_CallFunctionObjArgs(well_known("collections", "deque"), items.get(),
                                                          limit.get(), nullptr));
  if (!s.copy) interpreter.stop("a deque that cannot be copied");
  if (!list) s.witness = Ref::steal(PyObject_GetIter(s.copy.get()));
  if (added && !Ref::steal(PyObject_CallMethod(s.copy.get(), "extend", "(O)", added.get())))
    interpreter.stop("a container that cannot be extended");
  s.whole = true;
  interpreter.externals.keep_alive.push_back(s.copy);
  interpreter.shadows.copies.emplace(s.copy.get(), Ref::borrow(object));
  return s;
}

Ref known_item(Interpreter& interpreter, PyObject* item) {
  auto unread = interpreter.shadows.unread_items.find(item);
  if (unread == interpreter.shadows.unread_items.end()) return Ref::borrow(item);
  auto read = interpreter.externals.admitted.find(unread->second.source);
  return read == interpreter.externals.admitted.end() ? Ref::borrow(item) : read->second;
}

Ref read_item(Interpreter& interpreter, PyObject* item) {
  auto unread = interpreter.shadows.unread_items.find(item);
  return unread == interpreter.shadows.unread_items.end()
             ? Ref::borrow(item)
             : admit(interpreter, unread->second.object.get(), unread->second.source);
}

namespace {

void read_items(Interpreter& interpreter, PyObject* sequence) {
  const Py_ssize_t size = PyObject_Size(sequence);
  for (Py_ssize_t i = 0; i < size; ++i) {
    Ref item = Ref::steal(PySequence_GetItem(sequence, i));
    if (interpreter.shadows.unread_items.contains(item.get()))
      PySequence_SetItem(sequence, i, read_item(interpreter, item.get()).get());
  }
}

// The copy of a list or deque; if it is not whole, the list of appended items.
PyObject* added_items(Interpreter& interpreter, PyObject* object) {
  Shadow& s = interpreter.shadows.of(object);
  if (!s.copy) {
    s.copy = Ref::steal(PyList_New(0));
    interpreter.externals.keep_alive.push_back(s.copy);
  }
  return s.copy.get();
}

}  // namespace

bool append_items(Interpreter& interpreter, PyObject* object, PyObject* items) {
  require_open_effects(interpreter);
  PyObject* copy = added_items(interpreter, object);
  interpreter.shadows.of(object).written = true;
  if (PyList_Check(copy))
    return PyList_SetSlice(copy, PyList_GET_SIZE(copy), PyList_GET_SIZE(copy), items) == 0;
  return static_cast<bool>(Ref::steal(PyObject_CallMethod(copy, "extend", "(O)", items)));
}

void empty(Interpreter& interpreter, PyObject* object) {
  require_open_effects(interpreter);
  Shadow& s = interpreter.shadows.of(object);
  s.written = s.emptied = true;
  s.writes.clear();
  s.last_write.reset();
  s.before.clear();
  if (s.whole)  // the program may hold iterators over the copy
    static_cast<void>(Ref::steal(PyObject_CallMethod(s.copy.get(), "clear", nullptr)));
  else
    s.copy.reset();
}

// --- Dicts and sets, by key

namespace {

// Whether the container had the key at the start. Guards the answer.
bool had_key(Interpreter& interpreter, PyObject* container, PyObject* key) {
  Ref real = key_at_start(interpreter, key);
  if (!real) return false;
  const SourceId source = interpreter.externals.source_of(container);
  if (PyDict_Check(container)) {
    if (PyDict_GetItemWithError(container, real.get())) {
      admit_presence(interpreter, interpreter.guards().dict_item(source, real.get()));
      return true;
    }
    if (!PyErr_Occurred()) interpreter.guards().require(source, CheckKind::Absent, real.get());
    return false;
  }
  const int found = PySet_Contains(container, real.get());
  if (found >= 0)
    interpreter.guards().require(interpreter.guards().derived(SourceKind::SetMember, source, real.get()),
                                 found ? CheckKind::Present : CheckKind::Unbound, nullptr);
  return found == 1;
}

}  // namespace

int has_key(Interpreter& interpreter, PyObject* container, PyObject* item) {
  Ref key = own_key(interpreter, item);
  if (PyObject_Hash(key.get()) == -1) return -1;
  if (Shadow* s = interpreter.shadows.find(container)) {
    if (s->copy)
      return PyDict_Check(container) ? PyDict_Contains(s->copy.get(), key.get())
                                     : PySet_Contains(s->copy.get(), key.get());
    if (auto written = s->find(key.get())) return *written ? 1 : 0;
    if (s->emptied) return 0;
  }
  const bool found = had_key(interpreter, container, key.get());
  return PyErr_Occurred() ? -1 : found;
}

Ref read_entry(Interpreter& interpreter, PyObject* dict, PyObject* item) {
  Ref key = own_key(interpreter, item);
  if (PyObject_Hash(key.get()) == -1) return {};
  if (Shadow* s = interpreter.shadows.find(dict)) {
    if (s->copy) return Ref::borrow(PyDict_GetItemWithError(s->copy.get(), key.get()));
    if (auto written = s->find(key.get())) return *written;
    if (s->emptied) return {};
  }
  Ref real = key_at_start(interpreter, key.get());
  if (!real) return {};
  const SourceId source = interpreter.externals.source_of(dict);
  if (PyObject* value = PyDict_GetItemWithError(dict, real.get()))
    return admit(interpreter, value, interpreter.guards().dict_item(source, real.get()));
  if (!PyErr_Occurred()) interpreter.guards().require(source, CheckKind::Absent, real.get());
  return {};
}

Ref read_entry_or_make(Interpreter& interpreter, PyObject* dict, PyObject* key) {
  Ref value = read_entry(interpreter, dict, key);
  if (value || PyErr_Occurred()) return value;
  if (has_python_special(interpreter, dict, "__missing__"))
    return call_positional(interpreter, special_method(interpreter, dict, "__missing__").get(),
                           {Ref::borrow(key)});
  if (is_defaultdict_type(native_base(Py_TYPE(dict)))) {
    Ref name = interned("default_factory");
    Ref factory = generic_get_attribute(interpreter, dict, name.get());
    if (!factory) return {};
    if (factory != Py_None) {
      value = call_positional(interpreter, factory.get(), {});
      return value && set_item(interpreter, dict, key, value.get()) ? value : Ref();
    }
  }
  set_key_error(key);
  return {};
}

bool write_entry(Interpreter& interpreter, PyObject* container, PyObject* item, PyObject* value) {
  require_open_effects(interpreter);
  Ref key = own_key(interpreter, item);
  if (PyObject_Hash(key.get()) == -1) return false;
  Shadow& s = interpreter.shadows.of(container);
  if (!PyDict_Check(container)) {
    s.write(key.get(), value);
    if (!s.copy) return true;
    return (value ? PySet_Add(s.copy.get(), key.get()) : PySet_Discard(s.copy.get(), key.get())) >= 0;
  }
  if (!s.copy) {
    s.write(key.get(), value);
    return true;
  }
  const int found = PyDict_Contains(s.copy.get(), key.get());
  if (found < 0) return false;
  if (PyODict_Check(container) && s.iterated && (value == nullptr || !found))
    interpreter.stop("changes an ordered dict that it has iterated over");
  s.written = true;
  if (value) return PyDict_SetItem(s.copy.get(), key.get(), value) == 0;
  return !found || PyDict_DelItem(s.copy.get(), key.get()) == 0;
}

Py_ssize_t size_of(Interpreter& interpreter, PyObject* object) {
  const SourceId source = interpreter.externals.source_of(object);
  const Shadow* s = interpreter.shadows.find(object);
  if (s && s->whole) return PyObject_Size(s->copy.get());
  if (s && s->written && !PyList_Check(object) && is_sequence(object))
    return PyObject_Size(known_length(interpreter, object).copy.get());
  Py_ssize_t size = 0;
  if (!s || !s->emptied) {
    size = size_at_start(object);
    interpreter.guards().require(source, CheckKind::Length, nullptr, size);
  }
  if (!s) return size;
  if (s->copy) return size + PyObject_Size(s->copy.get());
  PyObject *key = nullptr, *index = nullptr;
  Py_ssize_t position = 0;
  while (s->last_write && PyDict_Next(s->last_write.get(), &position, &key, &index)) {
    const bool has = static_cast<bool>(s->writes[PyLong_AsSize_t(index)].second);
    const bool had = !s->emptied && had_key(interpreter, object, key);
    size += static_cast<Py_ssize_t>(has) - static_cast<Py_ssize_t>(had);
  }
  return size;
}

// --- Whole containers

Shadow& whole_dict(Interpreter& interpreter, PyObject* object) {
  Shadow& s = interpreter.shadows.of(object);
  if (s.whole) return s;
  Ref copy = Ref::steal(PyDict_New());
  if (!s.emptied) {
    const SourceId source = interpreter.externals.source_of(object);
    Ref keys = cpy::dict_keys(object);
    count_items(interpreter, static_cast<size_t>(PyTuple_GET_SIZE(keys.get())));
    interpreter.guards().require(source, CheckKind::DictKeys, keys.get());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) {
      PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
      Ref own = admit_key(interpreter, key);
      PyObject* value = PyDict_GetItemWithError(object, key);
      if (!value) interpreter.stop("a dict that changes while it is read");
      Ref admitted = admit(interpreter, value, interpreter.guards().dict_item(source, key));
      if (PyDict_SetItem(copy.get(), own.get(), admitted.get()) < 0)
        interpreter.stop("a dict key that cannot be hashed");
      s.before.push_back(own);
      s.before.push_back(admitted);
    }
  }
  for (const auto& [key, value] : s.writes) {
    if (value)
      PyDict_SetItem(copy.get(), key.get(), value.get());
    else if (PyDict_Contains(copy.get(), key.get()) == 1)
      PyDict_DelItem(copy.get(), key.get());
  }
  s.writes.clear();
  s.last_write.reset();
  s.copy = std::move(copy);
  s.whole = true;
  interpreter.shadows.copies.emplace(s.copy.get(), Ref::borrow(object));
  interpreter.externals.keep_alive.push_back(s.copy);
  return s;
}

namespace {

Shadow& whole_set(Interpreter& interpreter, PyObject* object) {
  Shadow& s = interpreter.shadows.of(object);
  if (!s.whole) {
    Ref copy = s.emptied ? Ref::steal(PySet_New(nullptr)) : cpy::copy_of_set(object);
    if (!s.emptied) {
      for (PyObject* item : cpy::SetItems(object)) {
        if (!guards::is_constant(item)) interpreter.stop("a set of objects that are not constants");
        s.before.push_back(Ref::borrow(item));
      }
    }
    for (const auto& [item, value] : s.writes)
      value ? PySet_Add(copy.get(), item.get()) : PySet_Discard(copy.get(), item.get());
    s.copy = std::move(copy);
    s.whole = true;
    interpreter.shadows.copies.emplace(s.copy.get(), Ref::borrow(object));
    interpreter.externals.keep_alive.push_back(s.copy);
  }
  if (!s.emptied) {
    Ref items = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(s.before.size())));
    for (size_t i = 0; i < s.before.size(); ++i)
      PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i), s.before[i].new_reference());
    int64_t mask = 0;
    if (s.written) {
      // After the same changes, two sets have the same order if their tables were the same.
      auto* table = reinterpret_cast<PySetObject*>(object);
      mask = table->mask;
      if (table->fill != table->used) interpreter.stop("reads all of a set that it has written to");
    }
    interpreter.guards().require(interpreter.externals.source_of(object), CheckKind::SetOrder, items.get(),
                                 mask);
  }
  return s;
}

}  // namespace

Ref materialize(Interpreter& interpreter, PyObject* object) {
  const SourceId source =
      trace::is_trace_tensor(object) ? kNoSource : interpreter.externals.source_of(object);
  if (source == kNoSource || (PyTuple_Check(object) && guards::is_value(object))) return Ref::borrow(object);
  if (is_sequence(object)) {
    Shadow& s = known_length(interpreter, object);
    if (!std::exchange(s.read, true)) read_items(interpreter, s.copy.get());
    return s.copy;
  }
  if (PyDict_Check(object)) return whole_dict(interpreter, object).copy;
  if (PySet_Check(object)) return whole_set(interpreter, object).copy;
  if (!PyTuple_Check(object) && !PyFrozenSet_Check(object)) return Ref::borrow(object);
  Ref& copy = interpreter.shadows.immutable_copies[object];
  if (copy) return copy;
  if (PyTuple_Check(object)) {
    count_items(interpreter, static_cast<size_t>(PyTuple_GET_SIZE(object)));
    interpreter.guards().require(source, CheckKind::Length, nullptr, PyTuple_GET_SIZE(object));
    Ref items = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(object)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      PyTuple_SET_ITEM(items.get(), i,
                       admit(interpreter, PyTuple_GET_ITEM(object, i),
                             interpreter.guards().tuple_item(source, static_cast<int32_t>(i)))
                           .release());
    interpreter.shadows.immutable_copies[object] = items;
  } else {
    for (PyObject* item : cpy::SetItems(object)) {
      if (guards::is_constant(item)) continue;
      if (!is_known_by_identity(interpreter, object) || !is_identity_object(item) ||
          hashes_itself(interpreter, item))
        interpreter.stop("a set of objects that are not constants");
      pin(interpreter, item);
    }
    if (!PyFrozenSet_CheckExact(object))
      interpreter.guards().require(source, CheckKind::SetOrder, cpy::items_of_set(object).get());
    interpreter.shadows.immutable_copies[object] = cpy::copy_of_set(object);
  }
  Ref result = interpreter.shadows.immutable_copies[object];
  // If the program returns an immutable copy, the object itself is returned: of these types they cannot be
  // told apart.
  if (PyTuple_CheckExact(object) || PyFrozenSet_CheckExact(object))
    interpreter.shadows.copies.emplace(result.get(), Ref::borrow(object));
  interpreter.externals.keep_alive.push_back(result);
  return result;
}

}  // namespace oxy::eval
