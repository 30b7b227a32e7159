// Instructions of generators and coroutines (SymbolicForm::Generator).
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_generator(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
