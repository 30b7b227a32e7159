// Locals, cells and what lies on the stack: what a frame holds.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The key of Shadow::writes under which a cell holds what was written to it.
inline constexpr char kCellContents[] = "cell_contents";

// admits it if it was not read before
Ref& local(Interpreter& interpreter, Frame& frame, int32_t index);
// null, no error: it holds nothing
Ref read_cell(Interpreter& interpreter, PyObject* cell);
// The frame lets go of an object. `unread`: where it is, if it was not admitted.
void drop(Interpreter& interpreter, const Frame& frame, PyObject* object,
          SourceId unread = guards::kNoSource);
void overwrite_local(Interpreter& interpreter, Frame& frame, int32_t index, Ref value);

// kNoSource: it was read, or made meanwhile.
SourceId unread_on_stack(const Frame& frame, size_t index);

}  // namespace oxy::eval
