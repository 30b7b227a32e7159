// Guards on identity: which object something is, as far as the program relies on it.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Whether an external object of this kind is guarded by identity. Others are guarded by what they are made
// of.
bool is_known_by_identity(Interpreter& interpreter, PyObject* object);
// Adds a guard on the identity of a function or bound C method that is guarded by its code only. Needed where
// more counts than its code and what a call reads: as a key, as an argument of C code.
void require_identity(Interpreter& interpreter, PyObject* known_by_code);
// The object, for a trace tensor the external tensor, guarded by identity. Null, without an exception, for
// objects that are others at most calls: fresh objects, and arguments other than modules, parameters and
// those of is_identity_object().
PyObject* identified(Interpreter& interpreter, PyObject* object);
// Guards the answer of `left is right`. The caller compares the pointers.
void compare_identity(Interpreter& interpreter, PyObject* left, PyObject* right);
// At the end of a capture: guards that objects which were distinct stay distinct. This concerns tensors,
// objects that are equal to themselves alone, and objects of a type of which one was written.
void guard_identities(Interpreter& interpreter);

}  // namespace oxy::eval
