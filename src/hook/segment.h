// A frame run in segments: what the frame loop asks of the compiler behind it.
//
// A segment is (code object, instruction offset, stack depth). The loop gives the runner the whole state of
// the frame at a segment's start; the runner runs what it compiled for it (or compiles it first), leaves the
// state as the original code would have, and says how the segment ended.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "cpy/ref.h"

namespace oxy::hook {

// The runner owns the entries of `locals` and `stack` and replaces them; the frame keeps references of its
// own until the segment has ended. The pointers are borrowed from the frame.
struct FrameState {
  PyCodeObject* code = nullptr;
  PyObject* function = nullptr;
  PyObject* globals = nullptr;  // a dict
  PyObject* builtins = nullptr;
  PyObject* names = nullptr;     // where LoadName looks first: class bodies and modules; null in functions
  std::vector<cpy::Ref> locals;  // in the order of co_localsplusnames; null: unbound; cells are cell objects
  std::vector<cpy::Ref>
      stack;           // bottom first, in the physical order of the Python version (bytecode/calls.h)
  int32_t offset = 0;  // where the segment starts, in code units; never inside the frame's prologue
};

enum class EndKind : uint8_t {
  Return,    // the value is on top of the stack, offset is that of a ReturnValue
  Break,     // perform the one instruction at offset natively, then ask for the next segment
  HandOver,  // CPython runs the rest, from offset
  Raise,     // a Python error is set: it is thrown at offset
};

// `offset` is that of an instruction of the frame's code (Instruction::offset), `state` is as it is before
// it.
struct SegmentEnd {
  EndKind kind = EndKind::HandOver;
  int32_t offset = 0;
};

class SegmentRunner {
 public:
  virtual ~SegmentRunner() = default;

  // Whether frames of this code are to be run in segments. Asked for every plain call that starts on an
  // active thread, in the context that it was entered in: it must be quick, must not run Python code and must
  // not raise.
  virtual bool wants(PyCodeObject* code, PyObject* globals) = 0;

  // What the runner needs to know of the call that this thread is in; adopted generators are resumed in the
  // one that they were adopted with. Returns the one before.
  virtual const void* enter(const void* context) = 0;

  // Called with the frame linked as the thread's current one, at state.offset, and with the hook off for this
  // thread: frames made by it belong to CPython. A C++ exception means that nothing happened: the state is
  // dropped and CPython runs the frame on from the segment's start.
  virtual SegmentEnd run(FrameState& state) = 0;
};

// Not owned; null for none. With the GIL held.
void set_runner(SegmentRunner* runner);

}  // namespace oxy::hook
