// Keys in the form in which C code may hash and compare them: all that it looks at is guarded, and no code of
// the program's runs.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Whether hashing or comparing the object as a key would run Python code of the program's.
bool hashes_itself(Interpreter& interpreter, PyObject* object);
// `key` itself, with constants in place of varying numbers. Its value is guarded. Stops if hashing it would
// run code of the program's.
Ref key_of(Interpreter& interpreter, PyObject* key);
// An iterable in the form in which C code may add its items to a set. Sets and dicts are passed as such,
// since their tables decide the order of the result. Anything else becomes a list.
Ref items_for_set(Interpreter& interpreter, PyObject* iterable);

}  // namespace oxy::eval
