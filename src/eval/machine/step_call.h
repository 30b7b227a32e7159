// Instructions that call, make functions (SymbolicForm::Call) and match patterns (SymbolicForm::Match).
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_call(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);
Flow step_match(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
