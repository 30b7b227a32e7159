// Takes or releases the global interpreter lock (GIL) for the time of a scope.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// Whether there are Python threads besides the calling one. The GIL is held.
inline bool has_other_threads() {
  PyThreadState* const first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return first && PyThreadState_Next(first);
}

// Holds the GIL while it lives, on any thread. May be nested.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Releases the GIL while it lives. The thread holds it before and after.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(thread_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_;
};

}  // namespace oxy::cpy
