// Lists, deques, dicts and sets that existed before the call: what is read of them, and how they are seen
// once the region has written to them.
#include <fmt/format.h>

#include "cpy/dict.h"
#include "cpy/set.h"
#include "eval/evaluator.h"
#include "eval/objects.h"
#include "guards/constants.h"
#include "runtime/tensor_object.h"

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

}  // namespace

// The key by which a container made before the call may have it. Null: it was made since, so that it is not
// among the keys.
Ref Evaluator::key_at_start(PyObject* key) {
  if (trace::is_trace_tensor(key)) {
    const auto real = external_of_.find(key);
    if (real == external_of_.end()) return {};
    guards().require(source_of(key), CheckKind::Identity, real->second);
    return Ref::borrow(real->second);
  }
  if (PyTuple_CheckExact(key)) {
    Ref items = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
    bool same = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      Ref item = key_at_start(PyTuple_GET_ITEM(key, i));
      if (!item) return {};
      same = same && item == PyTuple_GET_ITEM(key, i);
      PyTuple_SET_ITEM(items.get(), i, item.release());
    }
    return same ? Ref::borrow(key) : items;
  }
  if (any_tensor(key, trace::is_trace_tensor)) stop("looks up a tensor in a container made before the call");
  if (const SourceId source = source_of(key); source != kNoSource && !is_identity_object(key))
    guards().require(source, CheckKind::Identity, key);
  return Ref::borrow(key);
}

// A key as the program sees it, of one that a container holds.
Ref Evaluator::admit_key(PyObject* key) {
  if (guards::is_constant(key)) return Ref::borrow(key);
  if (!runtime::is_tensor(key) && hashes_itself(key)) stop("reads a dict with a key that hashes itself");
  if (!PyTuple_CheckExact(key) || !any_tensor(key, [](PyObject*) { return true; })) return pin(key);
  Ref items = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    PyTuple_SET_ITEM(items.get(), i, admit_key(PyTuple_GET_ITEM(key, i)).release());
  return items;
}

// What C code is to hash: nothing in it is looked at unguarded.
Ref Evaluator::own_key(PyObject* key) {
  const bool compares_itself =
      !trace::is_trace_tensor(key) && !compares_in_library(key) && has_python_special(key, "__eq__");
  if (hashes_itself(key) || compares_itself) stop("looks up a dict key that hashes itself");
  return PyTuple_Check(key) ? plain(key, "a dict") : key_of(key);
}

// --- Lists and deques

// After this the copy has as many items as the object, of which those that were not read are placeholders.
Shadow& Evaluator::known_length(PyObject* object) {
  Shadow& s = shadow(object);
  if (s.whole) return s;
  const bool list = PyList_Check(object);
  const SourceId source = source_of(object);
  Ref limit = Ref::borrow(Py_None);
  if (!list) {
    limit = Ref::steal(PyObject_GetAttrString(object, "maxlen"));
    guards().require(source, CheckKind::DequeLimit, nullptr,
                     limit == Py_None ? -1 : PyLong_AsSsize_t(limit.get()));
  }
  Ref items = Ref::steal(PyList_New(0));
  if (!s.emptied) {
    const Py_ssize_t size = size_at_start(object);
    guards().require(source, CheckKind::Length, nullptr, size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      const auto index = static_cast<int32_t>(i);
      const SourceId item = list ? guards().list_item(source, index)
                                 : guards().derived(SourceKind::DequeItem, source, nullptr, index);
      Ref placeholder = Ref::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
      // A subclass of list may have a __getitem__ of its own.
      unread_items_.emplace(placeholder.get(),
                            UnreadItem{item, list ? Ref::borrow(PyList_GET_ITEM(object, i))
                                                  : Ref::steal(PySequence_GetItem(object, i))});
      keep_alive_.push_back(placeholder);
      s.before.push_back(placeholder);
      PyList_Append(items.get(), placeholder.get());
    }
  }
  const Ref added = s.copy;
  s.copy = list ? items
                : Ref::steal(PyObject_CallFunctionObjArgs(well_known("collections", "deque"), items.get(),
                                                          limit.get(), nullptr));
  if (!s.copy) stop("a deque that cannot be copied");
  if (!list) s.witness = Ref::steal(PyObject_GetIter(s.copy.get()));
  if (added && !Ref::steal(PyObject_CallMethod(s.copy.get(), "extend", "(O)", added.get())))
    stop("a container that cannot be extended");
  s.whole = true;
  keep_alive_.push_back(s.copy);
  copies_.emplace(s.copy.get(), Ref::borrow(object));
  return s;
}

// What is known of a placeholder: the item itself if it was read.
Ref Evaluator::known_item(PyObject* item) const {
  auto unread = unread_items_.find(item);
  if (unread == unread_items_.end()) return Ref::borrow(item);
  auto read = admitted_.find(unread->second.source);
  return read == admitted_.end() ? Ref::borrow(item) : read->second;
}

Ref Evaluator::read_item(PyObject* item) {
  auto unread = unread_items_.find(item);
  return unread == unread_items_.end() ? Ref::borrow(item)
                                       : admit(unread->second.object.get(), unread->second.source);
}

void Evaluator::read_items(PyObject* sequence) {
  const Py_ssize_t size = PyObject_Size(sequence);
  for (Py_ssize_t i = 0; i < size; ++i) {
    Ref item = Ref::steal(PySequence_GetItem(sequence, i));
    if (unread_items_.contains(item.get())) PySequence_SetItem(sequence, i, read_item(item.get()).get());
  }
}

// The copy of a list or deque, or what was put behind it if that is all that is known.
PyObject* Evaluator::added_items(PyObject* object) {
  Shadow& s = shadow(object);
  if (!s.copy) {
    s.copy = Ref::steal(PyList_New(0));
    keep_alive_.push_back(s.copy);
  }
  return s.copy.get();
}

bool Evaluator::append_items(PyObject* object, PyObject* items) {
  require_open_effects();
  PyObject* copy = added_items(object);
  shadow(object).written = true;
  if (PyList_Check(copy))
    return PyList_SetSlice(copy, PyList_GET_SIZE(copy), PyList_GET_SIZE(copy), items) == 0;
  return static_cast<bool>(Ref::steal(PyObject_CallMethod(copy, "extend", "(O)", items)));
}

void Evaluator::empty(PyObject* object) {
  require_open_effects();
  Shadow& s = shadow(object);
  s.written = s.emptied = true;
  s.writes.clear();
  s.last_write.reset();
  s.before.clear();
  if (s.whole)  // iterators may be held
    static_cast<void>(Ref::steal(PyObject_CallMethod(s.copy.get(), "clear", nullptr)));
  else
    s.copy.reset();
}

// --- Dicts and sets, by key

// Whether the container had the key at the start, and what it means to rely on that.
bool Evaluator::had_key(PyObject* container, PyObject* key) {
  Ref real = key_at_start(key);
  if (!real) return false;
  const SourceId source = source_of(container);
  if (PyDict_Check(container)) {
    if (PyDict_GetItemWithError(container, real.get())) {
      admit_presence(guards().dict_item(source, real.get()));
      return true;
    }
    if (!PyErr_Occurred()) guards().require(source, CheckKind::Absent, real.get());
    return false;
  }
  const int found = PySet_Contains(container, real.get());
  if (found >= 0)
    guards().require(guards().derived(SourceKind::SetMember, source, real.get()),
                     found ? CheckKind::Present : CheckKind::Unbound, nullptr);
  return found == 1;
}

int Evaluator::has_key(PyObject* container, PyObject* item) {
  Ref key = own_key(item);
  if (PyObject_Hash(key.get()) == -1) return -1;
  if (Shadow* s = shadow_of(container)) {
    if (s->copy)
      return PyDict_Check(container) ? PyDict_Contains(s->copy.get(), key.get())
                                     : PySet_Contains(s->copy.get(), key.get());
    if (auto written = s->find(key.get())) return *written ? 1 : 0;
    if (s->emptied) return 0;
  }
  const bool found = had_key(container, key.get());
  return PyErr_Occurred() ? -1 : found;
}

Ref Evaluator::read_entry(PyObject* dict, PyObject* item) {
  Ref key = own_key(item);
  if (PyObject_Hash(key.get()) == -1) return {};
  if (Shadow* s = shadow_of(dict)) {
    if (s->copy) return Ref::borrow(PyDict_GetItemWithError(s->copy.get(), key.get()));
    if (auto written = s->find(key.get())) return *written;
    if (s->emptied) return {};
  }
  Ref real = key_at_start(key.get());
  if (!real) return {};
  const SourceId source = source_of(dict);
  if (PyObject* value = PyDict_GetItemWithError(dict, real.get()))
    return admit(value, guards().dict_item(source, real.get()));
  if (!PyErr_Occurred()) guards().require(source, CheckKind::Absent, real.get());
  return {};
}

// The value of a dict that may make what is missing. Null: an error is set.
Ref Evaluator::read_entry_or_make(PyObject* dict, PyObject* key) {
  Ref value = read_entry(dict, key);
  if (value || PyErr_Occurred()) return value;
  if (has_python_special(dict, "__missing__"))
    return call_positional(special_method(dict, "__missing__").get(), {Ref::borrow(key)});
  if (is_defaultdict_type(native_base(Py_TYPE(dict)))) {
    Ref name = interned("default_factory");
    Ref factory = generic_get_attribute(dict, name.get());
    if (!factory) return {};
    if (factory != Py_None) {
      value = call_positional(factory.get(), {});
      return value && set_item(dict, key, value.get()) ? value : Ref();
    }
  }
  set_key_error(key);
  return {};
}

bool Evaluator::write_entry(PyObject* container, PyObject* item, PyObject* value) {
  require_open_effects();
  Ref key = own_key(item);
  if (PyObject_Hash(key.get()) == -1) return false;
  Shadow& s = shadow(container);
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
    stop("changes an ordered dict that it has iterated over");
  s.written = true;
  if (value) return PyDict_SetItem(s.copy.get(), key.get(), value) == 0;
  return !found || PyDict_DelItem(s.copy.get(), key.get()) == 0;
}

Py_ssize_t Evaluator::size_of(PyObject* object) {
  const SourceId source = source_of(object);
  const Shadow* s = shadow_of(object);
  if (s && s->whole) return PyObject_Size(s->copy.get());
  if (s && s->written && !PyList_Check(object) && is_sequence(object))
    return PyObject_Size(known_length(object).copy.get());
  Py_ssize_t size = 0;
  if (!s || !s->emptied) {
    size = size_at_start(object);
    guards().require(source, CheckKind::Length, nullptr, size);
  }
  if (!s) return size;
  if (s->copy) return size + PyObject_Size(s->copy.get());
  PyObject *key = nullptr, *index = nullptr;
  Py_ssize_t position = 0;
  while (s->last_write && PyDict_Next(s->last_write.get(), &position, &key, &index)) {
    const bool has = static_cast<bool>(s->writes[PyLong_AsSize_t(index)].second);
    const bool had = !s->emptied && had_key(object, key);
    size += static_cast<Py_ssize_t>(has) - static_cast<Py_ssize_t>(had);
  }
  return size;
}

// --- Whole containers

Shadow& Evaluator::whole_dict(PyObject* object) {
  Shadow& s = shadow(object);
  if (s.whole) return s;
  Ref copy = Ref::steal(PyDict_New());
  if (!s.emptied) {
    const SourceId source = source_of(object);
    Ref keys = cpy::dict_keys(object);
    guards().require(source, CheckKind::DictKeys, keys.get());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) {
      PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
      Ref own = admit_key(key);
      PyObject* value = PyDict_GetItemWithError(object, key);
      if (!value) stop("a dict that changes while it is read");
      Ref admitted = admit(value, guards().dict_item(source, key));
      if (PyDict_SetItem(copy.get(), own.get(), admitted.get()) < 0) stop("a dict key that cannot be hashed");
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
  copies_.emplace(s.copy.get(), Ref::borrow(object));
  keep_alive_.push_back(s.copy);
  return s;
}

Shadow& Evaluator::whole_set(PyObject* object) {
  Shadow& s = shadow(object);
  if (!s.whole) {
    Ref copy = s.emptied ? Ref::steal(PySet_New(nullptr)) : cpy::copy_of_set(object);
    if (!s.emptied) {
      for (PyObject* item : cpy::SetItems(object)) {
        if (!guards::is_constant(item)) stop("a set of objects that are not constants");
        s.before.push_back(Ref::borrow(item));
      }
    }
    for (const auto& [item, value] : s.writes)
      value ? PySet_Add(copy.get(), item.get()) : PySet_Discard(copy.get(), item.get());
    s.copy = std::move(copy);
    s.whole = true;
    copies_.emplace(s.copy.get(), Ref::borrow(object));
    keep_alive_.push_back(s.copy);
  }
  if (!s.emptied) {
    Ref items = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(s.before.size())));
    for (size_t i = 0; i < s.before.size(); ++i)
      PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i), s.before[i].new_reference());
    int64_t mask = 0;
    if (s.written) {
      // The order of both after the same changes is that of their tables.
      auto* table = reinterpret_cast<PySetObject*>(object);
      mask = table->mask;
      if (table->fill != table->used) stop("reads all of a set that it has written to");
    }
    guards().require(source_of(object), CheckKind::SetOrder, items.get(), mask);
  }
  return s;
}

Ref Evaluator::materialize(PyObject* object) {
  const SourceId source = trace::is_trace_tensor(object) ? kNoSource : source_of(object);
  if (source == kNoSource || (PyTuple_Check(object) && guards::is_value(object))) return Ref::borrow(object);
  if (is_sequence(object)) {
    Shadow& s = known_length(object);
    if (!std::exchange(s.read, true)) read_items(s.copy.get());
    return s.copy;
  }
  if (PyDict_Check(object)) return whole_dict(object).copy;
  if (PySet_Check(object)) return whole_set(object).copy;
  if (!PyTuple_Check(object) && !PyFrozenSet_Check(object)) return Ref::borrow(object);
  Ref& copy = immutable_copies_[object];
  if (copy) return copy;
  if (PyTuple_Check(object)) {
    guards().require(source, CheckKind::Length, nullptr, PyTuple_GET_SIZE(object));
    Ref items = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(object)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      PyTuple_SET_ITEM(
          items.get(), i,
          admit(PyTuple_GET_ITEM(object, i), guards().tuple_item(source, static_cast<int32_t>(i))).release());
    immutable_copies_[object] = items;
  } else {
    for (PyObject* item : cpy::SetItems(object)) {
      if (guards::is_constant(item)) continue;
      if (!is_known_by_identity(object) || !is_identity_object(item) || hashes_itself(item))
        stop("a set of objects that are not constants");
      pin(item);
    }
    if (!PyFrozenSet_CheckExact(object))
      guards().require(source, CheckKind::SetOrder, cpy::items_of_set(object).get());
    immutable_copies_[object] = cpy::copy_of_set(object);
  }
  Ref result = immutable_copies_[object];
  // An immutable copy may be given back as it is: it stands for the object if there is no telling them apart.
  if (PyTuple_CheckExact(object) || PyFrozenSet_CheckExact(object))
    copies_.emplace(result.get(), Ref::borrow(object));
  keep_alive_.push_back(result);
  return result;
}

}  // namespace oxy::eval
