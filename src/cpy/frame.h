// CPython's own frames, which PEP 523 hooks are given. Only this folder knows _PyInterpreterFrame.
//
// Positions of instructions are code units from the start of co_code. A frame's slots are its locals in the
// order of co_localsplusnames (arguments, locals, cells, free variables), followed by the value stack. The
// GIL is held.
#pragma once

#include <Python.h>

#include <cstdint>

struct _PyInterpreterFrame;

namespace oxy::cpy {

inline constexpr int kCodeUnitBytes = 2;

// A view of a frame that somebody else owns. All PyObject results are borrowed.
class Frame {
 public:
  explicit Frame(_PyInterpreterFrame* frame) : frame_(frame) {}
  _PyInterpreterFrame* get() const { return frame_; }

  PyCodeObject* code() const;
  PyObject* function() const;    // the function object that was called
  PyObject* globals() const;     // a dict
  PyObject* builtins() const;    // a dict, mostly
  PyObject* names() const;       // mapping that LOAD_NAME and STORE_NAME use; null in functions
  bool is_plain_call() const;    // owned by the thread: not a generator's, not one that outlived its call
  bool is_at_start() const;      // no instruction has run yet
  bool is_of_generator() const;  // in a generator, coroutine or asynchronous generator
  void set_function(PyObject* function) const;  // takes a reference of its own

  PyObject** slots() const;  // they own their references
  int slot_count() const;    // locals plus stack, in use
  void set_slot_count(int count) const;

  // Sets where CPython goes on when the frame is handed over: at the instruction that starts at `unit`.
  void set_next(int32_t unit) const;
  // Sets the instruction that is being executed, for f_lineno, f_lasti and tracebacks. `unit`: that of its
  // opcode, behind EXTENDED_ARG.
  void set_executing(int32_t unit) const;
  int32_t executing() const;
  int32_t next() const;  // where CPython would go on now

 private:
  _PyInterpreterFrame* frame_;
};

// Makes a frame the thread's current one while it lives, so that sys._getframe(), tracebacks and warnings see
// it. Counts as one level of Python recursion, as a frame does in CPython. Frames have to be unlinked in
// reverse order, and before they are handed over.
class FrameLink {
 public:
  FrameLink(PyThreadState* thread, Frame frame);
  ~FrameLink() { unlink(); }
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;
  void unlink();

 private:
  PyThreadState* thread_;
  _PyInterpreterFrame* frame_;
  alignas(8) unsigned char storage_[32];  // a _PyCFrame on the versions that have one
  bool linked_ = true;
};

// CPython's eval loop goes on with the frame at the place that set_next() gave. Consumes the frame in any
// case. Returns a new reference, or null with an error set.
PyObject* evaluate(PyThreadState* thread, Frame frame);

// Throws the pending error at the instruction whose opcode is at `unit`. If the frame has a handler there, it
// runs with the present value stack. Unlinks and consumes the frame. Same result as evaluate().
PyObject* throw_into(PyThreadState* thread, Frame frame, FrameLink& link, int32_t unit);

// Whether frames of the code must start in CPython, since its RESUME has to bring the instrumentation up to
// date.
bool needs_interpreter_start(PyThreadState* thread, PyCodeObject* code);

}  // namespace oxy::cpy
