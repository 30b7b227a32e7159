// Which object it is: what the program has learnt of that, and what is guarded for it.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// An object from outside that is guarded by which one it is. The others are known by what they are made of.
bool is_known_by_identity(Interpreter& interpreter, PyObject* object);
// What is done with the function depends on more than its code and what its calls read.
void require_identity(Interpreter& interpreter, PyObject* known_by_code);
// The object that the program sees (of a tensor, the real one), guarded by which one it is. Null where that
// would be another one at most calls: what the region makes, and arguments other than modules, parameters
// and what is_identity_object() names.
PyObject* identified(Interpreter& interpreter, PyObject* object);
// what `is` answers is relied upon
void compare_identity(Interpreter& interpreter, PyObject* left, PyObject* right);
void guard_identities(Interpreter& interpreter);

}  // namespace oxy::eval
