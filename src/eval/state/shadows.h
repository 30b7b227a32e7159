// The shadows of all external objects that the program has written to, or whose contents it has looked at.
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
  // An item of a list or deque that has a placeholder in the copy, as the program has not read it.
  struct UnreadItem {
    guards::SourceId source;
    cpy::Ref object;
  };
  std::deque<Shadow> all;                                  // in the order of the first look or write
  std::unordered_map<PyObject*, size_t> index;             // by the object
  std::unordered_map<PyObject*, cpy::Ref> copies;          // fresh copy -> the external container
  std::unordered_map<PyObject*, UnreadItem> unread_items;  // by the placeholder in a copy
  size_t items_read = 0;                                   // of external containers: each of them is guarded
  std::unordered_map<PyObject*, cpy::Ref> immutable_copies;  // of external tuples and frozensets
  std::unordered_set<PyObject*> shown;                       // containers that plain() is working on
  // The `__dict__`s that the program has looked at, of fresh objects (borrowed, kept alive elsewhere).
  std::vector<PyObject*> fresh_dicts;
  // Not null: the code that is interpreted now runs at another time too, so that writes to external objects
  // stop. It names the cause: "a backward pass".
  const char* closed_by = nullptr;

  Shadow* find(PyObject* object);  // null: neither looked at nor written
  Shadow& of(PyObject* object);    // a new one if there is none; valid as long as this struct
  bool has_written() const;        // whether any object was written
};

}  // namespace oxy::eval
