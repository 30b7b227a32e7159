// The main loop of the interpreter: one canonical instruction after the other.
#pragma once

#include <cstdint>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Interprets the frame from `frame.next` on, until it returns, yields, or raises an exception that it does
// not handle. In the outermost frame of a segment Yielded means that stop_at was reached. Throws Break,
// Interrupted (a signal handler raised) and Unsupported.
Flow run(Interpreter& interpreter, Frame& frame);
// The same for a frame that does not yield; gives the return value.
Ref run_to_return(Interpreter& interpreter, Frame& frame);
// Goes on at instruction number `target`. Always true.
bool jump(Frame& frame, int32_t target);

}  // namespace oxy::eval
