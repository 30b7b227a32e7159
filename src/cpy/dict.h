// Whether a dict changed, in one comparison.
#pragma once

#include <Python.h>

#include <cstdint>

#include "cpy/ref.h"

namespace oxy::cpy {

// A number that differs after any change to the dict's keys or values, and that no two states of all dicts of
// the process share: equal versions mean equal contents, even when another dict now lies at the same address.
// `dict` must be a dict or of a subclass. A change to an object that the dict merely holds does not count.
//
// 0: the dict has no version that can be trusted, and what was read from it must be read again. On 3.13 that
// is the
// `__dict__` of an object that still keeps its values inline; see object_dict.h.
//
// The number lies in the dict itself up to 3.13; a later Python can serve this interface by dict watchers.
uint64_t dict_version(PyObject* dict);

// The tuple of the keys of a dict, or of an object of a subclass, in the order in which dict or OrderedDict
// iterate over them. Runs no Python code. Null with an error set if there is no memory.
Ref dict_keys(PyObject* dict);

// The dict that an object made by keys(), values() or items() shows. Borrowed.
PyObject* viewed_dict(PyObject* view);

}  // namespace oxy::cpy
