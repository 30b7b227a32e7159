// Instructions that build and unpack containers (SymbolicForm::Build).
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_build(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
