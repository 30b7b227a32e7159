// Objects whose special methods are code of the program's.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// C code is to look at an object: stops if that would run code of the program's, now and not at later runs.
void refuse_own_code(Interpreter& interpreter, PyObject* object, std::string_view where);
// it, or what it holds
bool has_own_code(Interpreter& interpreter, PyObject* object, int depth = 0);
bool has_own_special(Interpreter& interpreter, PyObject* object);
// Stops at a dict or set with its own __iter__: some C code asks for that, some does not.
void refuse_own_iteration(Interpreter& interpreter, PyObject* container);

}  // namespace oxy::eval
