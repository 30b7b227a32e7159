// The main loop: one canonical instruction after the other.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow run(Interpreter& interpreter, Frame& frame);
// null: exception set
Ref run_to_return(Interpreter& interpreter, Frame& frame);
bool jump(Interpreter& interpreter, Frame& frame, int32_t target);

}  // namespace oxy::eval
