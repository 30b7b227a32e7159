// Branches on what only data tell, where one of the two ways raises: `assert n > 0`, `if n < 0: raise ...`.
#pragma once

#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Whether the condition of a jump is true: the answer with which the program does not raise. The run checks
// it. `condition`: a number or tensor that only data tell. `jumps_if_true`: when the jump under way is made.
// Nothing: the condition is another object, neither way raises at once, or both do.
std::optional<bool> checked_branch(Interpreter& interpreter, const Frame& frame,
                                   const bytecode::Instruction& jump, bool jumps_if_true,
                                   PyObject* condition);

}  // namespace oxy::eval
