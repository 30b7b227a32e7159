// Writes and deletions of attributes.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// object.name = value, as CPython resolves it: __setattr__, descriptors, slots, __dict__. Null: del
// object.name.
bool set_attribute(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value);
// The same as object.__setattr__ does it.
bool generic_set_attribute(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value);
// Whether an external dict has the key `name`, as the program has left it. Guards the answer.
bool has_entry(Interpreter& interpreter, PyObject* dict, PyObject* name);

}  // namespace oxy::eval
