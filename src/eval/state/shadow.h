// The shadow of an external object: what the region has written to it, and how the program sees it since
// then.
#pragma once

#include <Python.h>

#include <optional>
#include <utility>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

// The object itself is not written during capture. A shadow has two forms, one after the other, so that no
// more is guarded than the program asked for:
//   - At first it has writes by key (of a dict, a set, attributes in slots, a cell), or items appended to a
//     list or deque. Nothing else that the object holds is known or guarded.
//   - Once the program looks at all of the object, the shadow has a `copy` of a builtin type with the
//     interpreter's objects. Reads, writes and iterators then work on the copy.
// The effects are the difference between the copy and the items `before`.
struct Shadow {
  cpy::Ref object;
  bool written = false;
  bool emptied = false;   // everything that it held at the start was removed
  bool whole = false;     // `copy` holds all items
  bool read = false;      // list or deque: all placeholders that the copy had at the start were read
  bool iterated = false;  // the program has made an iterator over it
  cpy::Ref copy;          // a list or deque that is not `whole`: the appended items alone
  cpy::Ref witness;  // deque: an iterator over `copy` from when it became `whole`; tells whether it changed
  // The interpreter's items at the start; for a dict, keys and values alternate. Only if `whole` and not
  // `emptied`.
  std::vector<cpy::Ref> before;

  // Writes by key, in order. A null value: deleted. For a set the keys are the items, and any value means
  // that the item was added.
  std::vector<std::pair<cpy::Ref, cpy::Ref>> writes;
  cpy::Ref last_write;  // dict: key → index of its last write

  // The value that was written under the key. Nothing: it was not written; null: it was deleted.
  std::optional<cpy::Ref> find(PyObject* key) const;
  void write(PyObject* key, PyObject* value);
};

}  // namespace oxy::eval
