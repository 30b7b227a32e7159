// The contract between the frame loop and the compiler. The driver implements it (driver/calls/segments.cpp).
//
// A segment is a code object, an instruction offset and a stack depth. The loop passes the whole state of the
// frame at the start of a segment to the runner. The runner runs the compiled segment, or compiles it first.
// It leaves the state as the original code would, and says how the segment ended.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "cpy/ref.h"

namespace oxy::hook {

// The state of a frame. The pointers are borrowed from the frame. The runner owns the entries of `locals` and
// `stack` and replaces them. The frame keeps references of its own until the segment has ended.
struct FrameState {
  PyCodeObject* code = nullptr;
  PyObject* function = nullptr;
  PyObject* globals = nullptr;  // a dict
  PyObject* builtins = nullptr;
  PyObject* names = nullptr;     // the local namespace of class bodies and modules; null in functions
  std::vector<cpy::Ref> locals;  // in the order of co_localsplusnames; null: unbound; cells are cell objects
  std::vector<cpy::Ref>
      stack;           // bottom first, in the physical order of the Python version (bytecode/calls.h)
  int32_t offset = 0;  // where the segment starts, in code units; never inside the frame's prologue
};

enum class EndKind : uint8_t {
  Return,    // the value is on top of the stack; `offset` is that of a ReturnValue
  Break,     // perform the one instruction at offset natively, then ask for the next segment
  HandOver,  // CPython runs the rest, from offset
  LeaveAll,  // the same, and frames below it are left to CPython, too
  Raise,     // a Python error is set; it is thrown at `offset`
};

// `offset`: that of an instruction of the frame's code (Instruction::offset). The state is that before the
// instruction.
struct SegmentEnd {
  EndKind kind = EndKind::HandOver;
  int32_t offset = 0;
};

class SegmentRunner {
 public:
  virtual ~SegmentRunner() = default;

  // Whether frames of this code are to be run in segments. Asked for every plain call that starts on an
  // active thread. It has to be quick, and must not run Python code or raise.
  virtual bool wants(PyCodeObject* code, PyObject* globals) = 0;

  // Sets the context of this thread: an opaque pointer that tells the runner which compiled call the thread
  // is in. Adopted generators are resumed with the context that adopt() was given. Returns the previous
  // context.
  virtual const void* enter(const void* context) = 0;

  // Runs the segment at state.offset. The frame is the thread's current one, and the hook is off for this
  // thread, so that frames which start now are left to CPython. If it throws a C++ exception, nothing has
  // happened: the state is dropped, and CPython runs the frame from the segment's start on.
  virtual SegmentEnd run(FrameState& state) = 0;
};

// Sets the runner of the process. It is not owned and has to live on; null: none. The GIL is held.
void set_runner(SegmentRunner* runner);

}  // namespace oxy::hook
