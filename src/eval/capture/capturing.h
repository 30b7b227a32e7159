// Captures a call or a part of a frame.
#pragma once

#include <Python.h>

#include <memory>
#include <set>
#include <span>
#include <string>

#include "eval/rebuild/capture.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

struct FrameRoots {
  PyCodeObject* code = nullptr;
  PyObject* function = nullptr;
  PyObject* globals = nullptr;
  PyObject* builtins = nullptr;
  std::span<PyObject* const> locals;  // localsplus; null: unbound
  std::span<PyObject* const> stack;   // null: a pushed NULL
  int32_t offset = 0;                 // code units
  // Places (GuardSet::describe) whose constants are not to be guarded: reading one is a Break. Null: none.
  const std::set<std::string>* unguarded = nullptr;
};

// Captures `callable(*roots[1:], **kwnames...)` whole: root 0 is the callable, the rest its arguments, the
// last len(kwnames) of them by keyword. Throws Break if it cannot be captured whole. The interpreter is a new
// one.
std::unique_ptr<Capture> capture_call(Interpreter& interpreter, std::span<PyObject* const> roots,
                                      PyObject* kwnames);

// Captures from the middle of a frame up to its return or up to a break. `stop_at`: end before the stop_at-th
// instruction of the frame (a break known from an earlier try); -1: none. On Break, Interpreter::executed
// says how many instructions of the frame came before the breaking one.
std::unique_ptr<Capture> capture_frame(Interpreter& interpreter, const FrameRoots& frame, int64_t stop_at);

}  // namespace oxy::eval
