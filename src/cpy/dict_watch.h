// Dict watchers: Python tells when one of many dicts changes, so that none of them has to be looked at.
#pragma once

#include <Python.h>

#include <cstdint>

namespace oxy::cpy {

// From now on each change of the dict counts in watched_changes(), its end too. False: Python does not tell.
// It has no watchers before 3.12, and eight at most. A dict without a version (dict.h) may change without a
// word.
bool watch_dict(PyObject* dict);

// How many changes of watched dicts there were. Needs the GIL.
uint64_t watched_changes();

}  // namespace oxy::cpy
