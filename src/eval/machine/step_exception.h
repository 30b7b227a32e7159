// Instructions of exceptions and with blocks (SymbolicForm::Exception), and the search for handlers.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Flow step_exception(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);
// `exception`: what the program raises. An exception class is replaced by an instance of it. False: an error
// is set, such as a TypeError for any other object.
bool instantiate(Interpreter& interpreter, Ref& exception);
// Goes on at the frame's handler of the pending exception, and takes the exception. False: it has no handler
// here, and the exception stays set.
bool unwind(Interpreter& interpreter, Frame& frame);

}  // namespace oxy::eval
