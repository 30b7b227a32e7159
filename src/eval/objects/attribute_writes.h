// Attributes: what is written and deleted.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// value null: delete
bool set_attribute(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value);
bool generic_set_attribute(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value);
// an external dict, as written so far
bool has_entry(Interpreter& interpreter, PyObject* dict, PyObject* name);

}  // namespace oxy::eval
