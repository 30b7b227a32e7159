// Advancing and closing generators.
#pragma once

#include <string>

#include "eval/state/interpreter.h"

namespace oxy::eval {

bool close_generator(Interpreter& interpreter, PyObject* generator);
// Runs the handlers of generators that died, as CPython closes them. Keeps the pending exception.
void close_abandoned(Interpreter& interpreter);
void refuse_what_tracebacks_hold(Interpreter& interpreter, const Frame& frame);

// What CPython's error texts call an object of the class.
const char* name_of(PyTypeObject* type);
// The pending exception becomes cause and context of a RuntimeError.
void raise_runtime_error(const std::string& text);

}  // namespace oxy::eval
