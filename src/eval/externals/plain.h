// Arguments in the form in which C code may look inside them: everything that it can read is guarded.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// What takes the place of varying ints.
enum class ShownAs : uint8_t {
  Constants,  // guarded
  Symbols,    // torch.SymInt objects, where a symbol is known for the int: for functions of torch's
};

// `object` with a copy in place of every external container in it, and constants in place of varying numbers.
// Stops at an object that C code may not be given, such as one with methods of the program's. `what`: the C
// function, for the reason.
Ref plain(Interpreter& interpreter, PyObject* object, const char* what, ShownAs ints = ShownAs::Constants);
// The same for an external object or a varying number. Fresh objects are given back as they are.
Ref known(Interpreter& interpreter, PyObject* object, const char* what);

}  // namespace oxy::eval
