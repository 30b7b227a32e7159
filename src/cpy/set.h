// The items of sets and frozensets in the order of iteration, without an iterator of Python's.
#pragma once

#include <Python.h>

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
    // What was removed has left entries with the hash -1, which no item has.
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

}  // namespace oxy::cpy
