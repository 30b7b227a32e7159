// Instructions of exceptions and with blocks.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_exception(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);
// The exception to raise for what a program gives: an instance, or one made of a class. False: an error is
// set.
bool instantiate(Interpreter& interpreter, Ref& exception);
// finds the handler of the pending exception; false: none in this frame
bool unwind(Interpreter& interpreter, Frame& frame);

}  // namespace oxy::eval
