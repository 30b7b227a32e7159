// The PEP 523 hook: when it is installed, and for which threads it acts.
//
// While installed it makes every Python call of the process slower, so it is installed only while some thread
// is inside call_with_hook(), or an adopted generator is alive. Frames of other threads and of traced threads
// go straight on, to a hook that was installed earlier if there is one. When calls nest so deep that the C
// stack could run out, the hook takes itself away until they have returned: the eval loop nests Python calls
// without C stack then.
#pragma once

#include <Python.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "cpy/frame.h"

namespace oxy::hook {

// Calls `callable` as PyObject_Vectorcall does; the frames made during the call, on this thread, go through
// the hook. May be nested.
PyObject* call_with_hook(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames);

// Whether it is a generator, coroutine or asynchronous generator.
bool can_adopt(PyObject* object);

// From now on the generator is resumed under the hook, whoever resumes it, and with the runner in `context`,
// which lives as long as the generator. Does nothing for what cannot be adopted, for a generator that runs or
// has ended, and for one that is adopted already.
void adopt(PyObject* generator, std::shared_ptr<const void> context);

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

// Asked about each frame that starts on a thread.
class FrameGate {
 public:
  FrameGate() = default;
  FrameGate(const FrameGate&) = delete;
  FrameGate& operator=(const FrameGate&) = delete;
  virtual ~FrameGate() = default;
  // Whether the frame, which is at its start, may run. False, with an error set: it raises that instead.
  virtual bool admits(cpy::Frame frame) = 0;
  // Whether the frame has nothing to do with what the gate is there for: run_apart() runs it then, and no
  // gate is asked meanwhile.
  virtual bool is_apart(cpy::Frame frame) = 0;
  // Returns what `run` gives.
  virtual PyObject* run_apart(const std::function<PyObject*()>& run) = 0;
};

// While one lives, the gate is asked on this thread, by frames within a HookPause too; null: none is.
class Gated {
 public:
  explicit Gated(FrameGate* gate);
  ~Gated();
  Gated(const Gated&) = delete;
  Gated& operator=(const Gated&) = delete;

 private:
  FrameGate* outer_;
};

// Whether our hook is in place, or was when another tool put its own above it.
bool is_installed();

}  // namespace oxy::hook
