// The beginning and the end of a capture: the driver calls these functions to capture a call or a segment.
#pragma once

#include <Python.h>

#include <memory>
#include <set>
#include <span>
#include <string>

#include "eval/rebuild/capture.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// The state of a frame at the start of a segment. Everything is borrowed for the time of the capture.
struct FrameRoots {
  PyCodeObject* code = nullptr;
  PyObject* function = nullptr;
  PyObject* globals = nullptr;
  PyObject* builtins = nullptr;
  std::span<PyObject* const> locals;  // localsplus; null: unbound
  std::span<PyObject* const> stack;   // null: a pushed NULL
  int32_t offset = 0;                 // code units
  // Places, as GuardSet::describe() names them, whose constants have changed too often. Reading one is a
  // Break. Null: none.
  const std::set<std::string>* unguarded = nullptr;
};

// Captures a whole call. Root 0 is the callable, the others are its arguments, and the last len(kwnames) of
// them are given by keyword. `kwnames`: a tuple of str, or null. Throws Break if the call cannot be captured
// whole, Unsupported if it has to be left to eager, and Interrupted. The interpreter must be a new one; it
// cannot be used again.
std::unique_ptr<Capture> capture_call(Interpreter& interpreter, std::span<PyObject* const> roots,
                                      PyObject* kwnames);

// Captures a segment: from `frame.offset` to the return of the frame, or up to `stop_at`. That is the number
// of instructions of the frame to execute; -1: all. Throws as capture_call() does. After a Break,
// Interpreter::executed counts the instructions of the frame, the breaking one included. So the caller
// captures once more, with one less as `stop_at`, and the capture ends right before the break.
std::unique_ptr<Capture> capture_frame(Interpreter& interpreter, const FrameRoots& frame, int64_t stop_at);

// After a capture that failed: raises RuntimeError (Interrupted) if it failed for the number of a size that
// is marked unbacked.
void raise_unbacked(const Interpreter& interpreter);

}  // namespace oxy::eval
