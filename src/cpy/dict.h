// Dicts: whether one has changed, in one comparison; keys and views without Python code.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpy/ref.h"

namespace oxy::cpy {

// The version of a dict, or of an object of a subclass. It differs after any change to the keys or values,
// and no two states of any dicts of the process share one. So equal versions mean equal contents, even if
// another dict lies at the same address now. A change inside of an object that the dict holds does not count.
//
// 0: the dict has no version that can be trusted, and what was read from it must be read again. On 3.13 this
// holds for the `__dict__` of an object that still keeps its values inline (object_dict.h).
//
// Up to 3.13 the number lies in the dict itself. A later Python can serve this interface by dict watchers.
uint64_t dict_version(PyObject* dict);

// A dict with its version of some time. `owner`: the caller's number for it.
struct KnownDict {
  PyObject* dict = nullptr;  // borrowed
  uint64_t version = 0;
  int32_t owner = -1;
};

// The place of the first dict that may have changed since; `dicts.size()` if there is none.
size_t first_changed(std::span<const KnownDict> dicts);

// The keys of a dict, or of an object of a subclass, as a tuple, in the order in which dict or OrderedDict
// iterate over them. Runs no Python code. Null with a MemoryError set.
Ref dict_keys(PyObject* dict);

// The dict behind an object that keys(), values() or items() gave. Borrowed from the view.
PyObject* viewed_dict(PyObject* view);

}  // namespace oxy::cpy
