// What the program has written to objects that existed before the call, and how it sees them since then.
#pragma once

#include <Python.h>

#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cpy/ref.h"
#include "eval/state/shadow.h"
#include "guards/source.h"

namespace oxy::eval {

struct Shadows {
  struct UnreadItem {
    guards::SourceId source;
    cpy::Ref object;
  };
  std::deque<Shadow> all;                                    // in the order of the first look or write
  std::unordered_map<PyObject*, size_t> index;               // by the object
  std::unordered_map<PyObject*, cpy::Ref> copies;            // fresh copy -> the external container
  std::unordered_map<PyObject*, UnreadItem> unread_items;    // by the placeholder in a copy
  std::unordered_map<PyObject*, cpy::Ref> immutable_copies;  // of external tuples and frozensets
  std::unordered_set<PyObject*> shown;                       // containers that plain() is inside of
  std::vector<PyObject*> fresh_dicts;  // that the program has looked at, of objects it made; kept alive
  const char* closed_by = nullptr;     // what is interpreted now runs later, or once more; null: nothing

  Shadow* find(PyObject* object);  // null: neither looked at nor written
  Shadow& of(PyObject* object);    // a new one if there is none
  bool has_written() const;
};

}  // namespace oxy::eval
