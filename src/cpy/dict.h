// Whether a dict changed, in one comparison.
#pragma once

#include <Python.h>

#include <cstdint>

namespace oxy::cpy {

// A number that differs after any change to the dict's keys or values, and that no two states of all dicts of
// the process share: equal versions mean equal contents, even when another dict now lies at the same address.
// `dict` must be a dict or of a subclass. A change to an object that the dict merely holds does not count.
//
// 3.11-3.13 keep the number in the dict itself; watchers, which live in the same word from 3.12 on, are
// masked out.
uint64_t dict_version(PyObject* dict);

}  // namespace oxy::cpy
