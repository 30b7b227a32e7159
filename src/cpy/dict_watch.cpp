#include "cpy/dict_watch.h"

#include "cpy/version.h"

namespace oxy::cpy {

#if OXY_PYTHON >= 312

namespace {

uint64_t changes = 0;

int count_change(PyDict_WatchEvent, PyObject*, PyObject*, PyObject*) {
  ++changes;
  return 0;
}

// -1: other packages have all watchers.
int watcher() {
  static const int number = [] {
    const int added = PyDict_AddWatcher(&count_change);
    if (added < 0) PyErr_Clear();
    return added;
  }();
  return number;
}

}  // namespace

bool watch_dict(PyObject* dict) {
  if (watcher() < 0) return false;
  if (PyDict_Watch(watcher(), dict) == 0) return true;
  PyErr_Clear();
  return false;
}

uint64_t watched_changes() {
  return changes;
}

#else

bool watch_dict(PyObject*) {
  return false;
}

uint64_t watched_changes() {
  return 0;
}

#endif

}  // namespace oxy::cpy
