// What C code is given to hash.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// True if hashing or comparing the object as a dict key would run Python code of the user's.
bool hashes_itself(Interpreter& interpreter, PyObject* object);
// What C code is to hash in place of `key`: the same, with constants in place of varying numbers. All that
// it then looks at is guarded. Stops if that runs code of the program's.
Ref key_of(Interpreter& interpreter, PyObject* key);
// What C code is given of an iterable to add its items to a set: sets and dicts themselves, whose tables
// count for the order that comes of it, of anything else a list. Null: exception set.
Ref items_for_set(Interpreter& interpreter, PyObject* iterable);

}  // namespace oxy::eval
