// Instructions that read and write names.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_names(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
