// What a captured region has done to an object that existed before it, and how it sees the object since then.
#pragma once

#include <Python.h>

#include <optional>
#include <utility>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

// The object itself is never written while evaluating. Two forms follow one another, so that no more is
// guarded of it than the program asked for:
//   - writes by key (of a dict, a set, attributes in slots, a cell), or items put behind a list or deque that
//     is not known otherwise: nothing else of what the object holds is known or guarded;
//   - once the program has looked at all of it, a `copy` of a builtin type with the interpreter's objects:
//     reads, writes and iterators then work on the copy.
// What the object gets in the end is the difference between the copy and what was there `before`.
struct Shadow {
  cpy::Ref object;
  bool written = false;
  bool emptied = false;  // what it held at the start is gone, whatever it was
  bool whole = false;    // `copy` holds all
  bool read = false;     // of a list or deque: all that its copy held at the start was read
  bool iterated = false;
  cpy::Ref copy;     // of a list or deque that is not `whole`: what was put behind the rest
  cpy::Ref witness;  // of a deque: an iterator over `copy` as it was when it became `whole`
  // The interpreter's items at the start, of a dict keys and values by turns. Only if `whole` and not
  // emptied.
  std::vector<cpy::Ref> before;

  // Writes by key. A null value: deleted. In the set of keys that a set is, the value says nothing else.
  std::vector<std::pair<cpy::Ref, cpy::Ref>> writes;  // in order
  cpy::Ref last_write;                                // dict: key → index of its last write

  // What was written under the key: nothing if it was not, null if it was deleted.
  std::optional<cpy::Ref> find(PyObject* key) const;
  void write(PyObject* key, PyObject* value);
};

}  // namespace oxy::eval
