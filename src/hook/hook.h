// The PEP 523 hook: when it is installed, and for which threads it acts.
//
// While installed it makes every Python call of the process slower, so it is installed only while some thread
// is inside call_with_hook(). Frames of other threads, of generators and coroutines, and of traced threads go
// straight on, to a hook that was installed earlier if there is one. When calls nest so deep that the C stack
// could run out, the hook takes itself away until they have returned: the eval loop nests Python calls
// without C stack then.
#pragma once

#include <Python.h>

#include <cstddef>

namespace oxy::hook {

// Calls `callable` as PyObject_Vectorcall does; the frames made during the call, on this thread, go through
// the hook. May be nested.
PyObject* call_with_hook(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames);

// Turns the hook off for this thread: frames made inside belong to CPython.
class HookPause {
 public:
  HookPause();
  ~HookPause();
  HookPause(const HookPause&) = delete;
  HookPause& operator=(const HookPause&) = delete;

 private:
  int saved_;
};

// Whether our hook is in place, or was when another tool put its own above it.
bool is_installed();

}  // namespace oxy::hook
