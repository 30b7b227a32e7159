// The hook: the PEP 523 function that CPython calls for each Python frame. It decides which frames the frame
// loop runs. All functions need the GIL.
//
// While it is installed, every Python call of the process is slower. So it is installed only while some
// thread is inside call_with_hook(), or an adopted generator is alive. It passes frames of other threads and
// of traced threads on, to a hook that was installed earlier if there is one. When calls nest so deep that
// the C stack could run out, the hook is removed until they have returned, since CPython nests Python calls
// without C stack then.
#pragma once

#include <Python.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "cpy/frame.h"

namespace oxy::hook {

// Calls `callable` as PyObject_Vectorcall() does. Frames that start on this thread during the call go through
// the hook. May be nested.
PyObject* call_with_hook(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames);

// Whether the object is a generator, coroutine or asynchronous generator.
bool can_adopt(PyObject* object);

// Adopts a generator: from now on it is resumed under the hook, whoever resumes it, after
// SegmentRunner::enter() with `context`. `context` is kept as long as the generator lives. Does nothing for
// other objects, for a generator that is running or has ended, and for one that is adopted already.
void adopt(PyObject* generator, std::shared_ptr<const void> context);

// Turns the hook off for this thread while it lives: frames that start then are left to CPython. May be
// nested.
class HookPause {
 public:
  HookPause();
  ~HookPause();
  HookPause(const HookPause&) = delete;
  HookPause& operator=(const HookPause&) = delete;

 private:
  int saved_;
};

// Decides which frames may run on a thread, for the time of a capture.
class FrameGate {
 public:
  FrameGate() = default;
  FrameGate(const FrameGate&) = delete;
  FrameGate& operator=(const FrameGate&) = delete;
  virtual ~FrameGate() = default;
  // Whether the frame, which is at its start, may run. False with a Python error set: the call raises it
  // instead.
  virtual bool admits(cpy::Frame frame) = 0;
  // Whether the frame has nothing to do with the capture. Then run_apart() runs it, and no gate is asked
  // meanwhile.
  virtual bool is_apart(cpy::Frame frame) = 0;
  // Calls `run`, which runs the frame, and returns its result.
  virtual PyObject* run_apart(const std::function<PyObject*()>& run) = 0;
  // A frame has ended with the Python error that is set.
  virtual void notice_error() = 0;
};

// While one lives, the gate (null: none) is asked about each frame that starts on this thread, also within a
// HookPause. May be nested: the innermost one counts.
class Gated {
 public:
  explicit Gated(FrameGate* gate);
  ~Gated();
  Gated(const Gated&) = delete;
  Gated& operator=(const Gated&) = delete;

 private:
  FrameGate* outer_;
};

// Whether the hook is installed. It counts as installed if another tool has put its own hook above it.
bool is_installed();

}  // namespace oxy::hook
