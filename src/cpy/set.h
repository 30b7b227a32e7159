// Sets and frozensets from the inside: their items without a Python iterator, and their hash table, which
// decides the order of iteration.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpy/ref.h"

namespace oxy::cpy {

// `for (PyObject* item : SetItems(set))`: borrowed items. The set must not change meanwhile.
class SetItems {
 public:
  explicit SetItems(PyObject* set) : table_(reinterpret_cast<const PySetObject*>(set)) {}

  struct End {};
  class Iterator {
   public:
    explicit Iterator(const PySetObject* table) : table_(table) { skip(); }
    PyObject* operator*() const { return table_->table[position_].key; }
    Iterator& operator++() {
      ++position_;
      skip();
      return *this;
    }
    bool operator!=(End) const { return position_ <= table_->mask; }

   private:
    // Removed items leave entries with the hash -1, which no item has.
    void skip() {
      while (position_ <= table_->mask &&
             (table_->table[position_].key == nullptr || table_->table[position_].hash == -1))
        ++position_;
    }

    const PySetObject* table_;
    Py_ssize_t position_ = 0;
  };

  Iterator begin() const { return Iterator(table_); }
  End end() const { return {}; }

 private:
  const PySetObject* table_;
};

// The items as a tuple, in the order of iteration. Null with a MemoryError set.
inline Ref items_of_set(PyObject* set) {
  Ref items = Ref::steal(PyTuple_New(PySet_GET_SIZE(set)));
  Py_ssize_t i = 0;
  if (items)
    for (PyObject* item : SetItems(set)) PyTuple_SET_ITEM(items.get(), i++, Py_NewRef(item));
  return items;
}

// The layout of a set's hash table, without the items. A set of equal items with the same layout has the same
// order, now and after the same changes.
struct SetTable {
  static constexpr int32_t kFree = -1;
  static constexpr int32_t kRemoved = -2;
  struct Entry {
    int32_t item;  // its number in the order of iteration, kFree or kRemoved
    Py_hash_t hash;
  };
  std::vector<Entry> entries;   // empty: the layout is not known
  PyObject* removed = nullptr;  // CPython's mark for entries of removed items: an object that lives for ever
  Py_ssize_t finger = 0;        // the entry where pop() goes on
};

inline SetTable table_of(PyObject* set) {
  const auto* object = reinterpret_cast<const PySetObject*>(set);
  SetTable table;
  table.entries.reserve(static_cast<size_t>(object->mask) + 1);
  table.finger = object->finger;
  int32_t items = 0;
  for (Py_ssize_t i = 0; i <= object->mask; ++i) {
    const setentry& entry = object->table[i];
    const bool is_removed = entry.key && entry.hash == -1;
    if (is_removed) table.removed = entry.key;
    table.entries.push_back(
        {is_removed ? SetTable::kRemoved : (entry.key ? items++ : SetTable::kFree), entry.hash});
  }
  return table;
}

// Whether two sets have tables of the same size with the same objects in the same entries.
inline bool same_tables(PyObject* a, PyObject* b) {
  const auto *x = reinterpret_cast<PySetObject*>(a), *y = reinterpret_cast<PySetObject*>(b);
  if (x->mask != y->mask) return false;
  for (Py_ssize_t i = 0; i <= x->mask; ++i)
    if (x->table[i].key != y->table[i].key) return false;
  return true;
}

// Fills an empty set, or a new frozenset that nobody has seen, with `items` (a tuple), which must have the
// hashes in the table. False with a MemoryError set; the set is empty then.
inline bool lay_out(PyObject* set, const SetTable& table, PyObject* items) {
  auto* object = reinterpret_cast<PySetObject*>(set);
  const size_t size = table.entries.size();
  setentry* entries = object->smalltable;
  if (size > PySet_MINSIZE) entries = static_cast<setentry*>(PyMem_Malloc(size * sizeof(setentry)));
  if (!entries) {
    PyErr_NoMemory();
    return false;
  }
  Py_ssize_t fill = 0;
  for (size_t i = 0; i < size; ++i) {
    const SetTable::Entry& entry = table.entries[i];
    PyObject* key = nullptr;
    if (entry.item >= 0) key = Py_NewRef(PyTuple_GET_ITEM(items, entry.item));
    if (entry.item == SetTable::kRemoved) key = table.removed;
    entries[i] = {key, entry.hash};
    fill += key != nullptr ? 1 : 0;
  }
  object->table = entries;
  object->mask = static_cast<Py_ssize_t>(size) - 1;
  object->fill = fill;
  object->used = PyTuple_GET_SIZE(items);
  object->finger = table.finger;
  return true;
}

// A new set or frozenset (`type`) with this table and `items`, a tuple in the order of iteration. Null with a
// MemoryError set.
inline Ref set_with_table(PyTypeObject* type, const SetTable& table, PyObject* items) {
  Ref made = Ref::steal(type == &PyFrozenSet_Type ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
  return made && lay_out(made.get(), table, items) ? std::move(made) : Ref();
}

// A copy of a set or frozenset, with the same items and table. Null with a MemoryError set.
inline Ref copy_of_set(PyObject* set) {
  const Ref items = items_of_set(set);
  if (!items) return {};
  return set_with_table(PyFrozenSet_Check(set) ? &PyFrozenSet_Type : &PySet_Type, table_of(set), items.get());
}

}  // namespace oxy::cpy
