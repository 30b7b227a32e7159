// Closing generators of the interpreter's, and errors around them. evaluation.h declares how they are
// advanced.
#pragma once

#include <string>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// generator.close(): runs what is left of its try and with blocks.
bool close_generator(Interpreter& interpreter, PyObject* generator);
// Closes the generators in Calls::abandoned, as CPython does when they die. Keeps the pending exception.
void close_abandoned(Interpreter& interpreter);
// To be called when a frame returns. If a local holds an exception that the frame has caught, CPython's
// traceback keeps the frame alive, and with it a generator that has something left to do. Stops then.
void refuse_what_tracebacks_hold(Interpreter& interpreter, const Frame& frame);

// The word for an object of the class in CPython's error texts: "generator", "coroutine" ...
const char* name_of(PyTypeObject* type);
// Replaces the pending exception by a RuntimeError with this text. The old one becomes its cause and context.
void raise_runtime_error(const std::string& text);

}  // namespace oxy::eval
