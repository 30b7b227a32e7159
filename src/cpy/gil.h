// Taking and leaving the global interpreter lock for the time of a scope.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// Whether the interpreter has more Python threads than the one that asks.
inline bool has_other_threads() {
  PyThreadState* const first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return first && PyThreadState_Next(first);
}

// Holds the GIL, in whatever thread.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Lets other threads have the GIL, which this thread holds before and after.
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
