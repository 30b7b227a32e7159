// Instructions of generators and coroutines.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_generator(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
