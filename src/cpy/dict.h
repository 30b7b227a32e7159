// Whether a dict changed, in one comparison.
#pragma once

#include <Python.h>

#include <cstdint>

namespace oxy::cpy {

// A number that differs after any change to the dict's keys or values, and that no two states of all dicts of
// the process share: equal versions mean equal contents, even when another dict now lies at the same address.
// `dict` must be a dict or of a subclass. A change to an object that the dict merely holds does not count.
//
// The number lies in the dict itself. 3.13 forgets to renew it when a store through an object changes the
// object's
// `__dict__`: such a dict gets a watcher that does, at the first call for it. A later Python without the
// number can serve this interface by watchers alone.
uint64_t dict_version(PyObject* dict);

}  // namespace oxy::cpy
