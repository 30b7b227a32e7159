// Locals, cells and stack entries of a frame, which are admitted when they are read.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The key in Shadow::writes for the contents of a cell.
inline constexpr char kCellContents[] = "cell_contents";

// A local by its localsplus index, admitted if it was not read before; null if it is unbound, which is
// guarded.
Ref& local(Interpreter& interpreter, Frame& frame, int32_t index);
// The contents of a cell. Null without an exception: it is empty.
Ref read_cell(Interpreter& interpreter, PyObject* cell);
// To be called when a frame lets go of an object. In the outermost frame it stops if the program could notice
// the object's end, since CPython's frame holds the object until the segment has ended. Otherwise it guards
// that there is nothing to notice. `unread`: the source of an object that was not admitted.
void drop(Interpreter& interpreter, const Frame& frame, PyObject* object,
          SourceId unread = guards::kNoSource);
// Stores a value in a local, or makes it unbound (null), and drops the old value.
void overwrite_local(Interpreter& interpreter, Frame& frame, int32_t index, Ref value);

// The source of stack entry `index`; kNoSource if it was read or pushed by the interpreter.
SourceId unread_on_stack(const Frame& frame, size_t index);

}  // namespace oxy::eval
