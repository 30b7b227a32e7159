// Locals and stack entries that a segment finds in its frame are admitted only when an instruction uses them
// as operands. So nothing is guarded that the segment merely passes on to the instruction that it breaks at.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Performs a load, store or drop of an object that was not read yet, without reading it. False: the
// instruction is another one, and nothing was done.
bool move_unread(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);
// Admits the operands of the instruction that were not read yet.
void admit_operands(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
