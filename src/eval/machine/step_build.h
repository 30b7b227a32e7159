// Instructions that make and take apart containers.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_build(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
