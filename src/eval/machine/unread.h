// What a segment finds in its frame: admitted when an instruction has it as an operand.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Loads, stores and drops what was not read so far, without reading it. False: nothing was done.
bool move_unread(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);
void admit_operands(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
