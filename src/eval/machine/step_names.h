// Instructions that read and write names (SymbolicForm::Names): globals, builtins, cells, super() and
// imports.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_names(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

}  // namespace oxy::eval
